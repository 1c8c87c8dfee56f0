"""The type of the options that take a time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click

from app.core.errors import Invalid
from app.core.validation.fields import AwareDateTime

FIELD = AwareDateTime()


class Time(click.ParamType):
    """A date, or a time with or without an offset; without one it is UTC. Converted to UTC."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            moment = datetime.fromisoformat(value)
            found: datetime = FIELD.from_json(
                moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            )
        except (ValueError, Invalid):
            self.fail(
                f"{value!r} is no time, such as 2030-01-31 or 2030-01-31T12:00:00Z.", param, ctx
            )
        return found


def time_option(*names: str, help: str, **options: Any) -> Callable[[Any], Any]:
    """An option whose value is a time; its help says that UTC is meant."""
    told = f"{help} A date or a time, such as 2030-01-31T12:00:00Z; UTC without an offset."
    return click.option(*names, type=Time(), help=told, **options)

"""Conditions of lists other than equality: periods, and conditions that a domain builds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from sqlalchemy import ColumnElement, bindparam
from sqlalchemy.orm import InstrumentedAttribute

from app.core.db.models import Moment


@dataclass(frozen=True)
class Condition:
    """A condition of a list, and the values of its parameters.

    Build the clause once, with ``bindparam``, because it is part of the key under which the list's
    statements are cached. ``finds_ids`` says that the clause allows only a few ids, of one tenant.
    Then one plan is best for all values, so the statement may be prepared. The list then adds no
    condition on the tenant.
    """

    clause: ColumnElement[bool]
    values: Mapping[str, object]
    finds_ids: bool = False


TimeColumn = (
    ColumnElement[datetime]
    | InstrumentedAttribute[datetime]
    | InstrumentedAttribute[datetime | None]
)


def between(column: TimeColumn, since: datetime | None, until: datetime | None) -> list[Condition]:
    """The conditions ``column >= since`` and ``column < until``.

    There is no condition for a bound that is None.
    """
    bounds = {f"{column.key}_since": since, f"{column.key}_until": until}
    return [
        Condition(_bound(column, name), {name: moment})
        for name, moment in bounds.items()
        if moment is not None
    ]


@lru_cache(maxsize=100)
def _bound(column: TimeColumn, name: str) -> ColumnElement[bool]:
    moment = bindparam(name, type_=Moment)
    return column >= moment if name.endswith("since") else column < moment

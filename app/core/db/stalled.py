"""Finds unfinished work whose job was lost: rows that no worker has touched for some time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, func, select, update

from app.core.db.statements import Statement
from app.extensions import Model


def take_stalled(
    model: type[Model], worked_at: str, after: timedelta, *conditions: ColumnElement[bool]
) -> Statement[Any]:
    """A statement that returns the primary keys of stalled rows: the oldest first, at most 100.

    A row is stalled if its time in the column ``worked_at`` is more than ``after`` ago, and all
    ``conditions`` hold. The statement sets the time to now, so the next call does not return the
    row again. Locked rows are skipped.
    """
    table = model.__table__
    keys, time = tuple(table.primary_key), table.c[worked_at]
    stalled = (
        select(*keys)
        .where(*conditions, time < func.now() - after)
        .order_by(time)
        .limit(100)
        .with_for_update(skip_locked=True)
        .cte("stalled")
    )
    return Statement(
        f"{table.name}.take_stalled",
        update(table)
        .where(*(key == stalled.c[key.name] for key in keys))
        .values({time: func.now()})
        .returning(*keys),
    )

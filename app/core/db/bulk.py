"""Statements that take many rows as arrays, and an UPDATE of many rows.

Each column is sent as one array. So the text of the statement is the same for any number of rows,
and the statement can be prepared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import ARRAY, Select, Table, bindparam, cast, column, func, select, update

from app.core.db.models import Row
from app.core.db.queries import Change, Conflicts, difference, raising, stamp
from app.core.db.statements import Statement
from app.core.db.transactions import RowChanged

R = TypeVar("R", bound=Row)


def rows_from_arrays(table: Table, names: Sequence[str], prefix: str = "") -> Select[Any]:
    """A SELECT of one row per array element, for ``insert(table).from_select(names, …)``.

    The statement has one parameter per column, named ``prefix`` + the column's name. Its value is
    an array. :func:`as_arrays` makes these arrays.

    Each array is in a subquery, so PostgreSQL does not know the array's length when it plans. If it
    did, it would plan the prepared statement at each execution, which costs more than running it.
    """
    columns = [column(name, table.c[name].type) for name in names]
    arrays = []
    for each in columns:
        type_ = ARRAY(each.type, dimensions=1)
        array = cast(bindparam(prefix + each.name, type_=type_), type_)
        arrays.append(select(array).scalar_subquery())
    rows = func.unnest(*arrays).table_valued(*columns, name="new").render_derived()
    return select(*(rows.c[name] for name in names))


def as_arrays(rows: Sequence[Mapping[str, object]]) -> dict[str, list[object]]:
    """Turn rows into one array per column. There must be a row, and all must have the same keys."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def update_rows(
    model: type[R],
    rows: Sequence[tuple[R, Mapping[str, object]]],
    *,
    actor_id: str | None = None,
    also: Callable[[Mapping[str, Any]], Mapping[str, object]] | None = None,
    conflicts: Conflicts | None = None,
) -> list[tuple[R, Change | None]]:
    """Do :func:`app.core.db.queries.update_row` for many rows, each with its values, by one UPDATE.

    ``also`` is called with a row's changed values, and returns further columns to set.
    """
    stamped = stamp(model, actor_id)
    results: list[tuple[R, Change | None]] = []
    written: list[R] = []
    changed: set[str] = {*stamped, "version"}
    for old, values in rows:
        new, change = old, difference(old, values)
        if change is not None:
            further = also(change.after) if also else {}
            changed |= change.after.keys() | further.keys()
            new = old._replace(**change.after, **further, **stamped, version=old.version + 1)
            written.append(new)
        results.append((new, change))
    if written:
        table = model.__table__
        names = tuple(c.name for c in table.columns if c.primary_key or c.name in changed)
        arrays = as_arrays([{name: getattr(row, name) for name in names} for row in written])
        with raising(conflicts):
            count = _update(table, names).execute(**arrays)
        if count != len(written):
            raise RowChanged(table.name)
    return results


@lru_cache(maxsize=100)
def _update(table: Table, names: tuple[str, ...]) -> Statement:
    new = rows_from_arrays(table, names).subquery("written").c
    same = [column == new[column.name] for column in table.primary_key]
    clause = update(table).where(*same, table.c.version == new.version - 1)
    values = {name: new[name] for name in names if not table.c[name].primary_key}
    return Statement(f"{table.name}.update_many", clause.values(values))

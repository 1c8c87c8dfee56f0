"""Statements that write many rows: INSERT, also into several tables at once, and UPDATE.

Each column is sent as one array. So the text of the statement does not depend on the number of
rows, and the statement can be prepared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import ARRAY, Select, bindparam, cast, column, func, insert, select, update

from app.core.clock import utcnow
from app.core.db.models import Attributed, Row
from app.core.db.queries import COLLECTED_ROWS, Change, written_columns
from app.core.db.statements import Statement
from app.core.db.transactions import RowChanged, context
from app.core.json_text import differs

R = TypeVar("R", bound=Row)


def rows_from_arrays(model: Any, names: Sequence[str], prefix: str = "") -> Select[Any]:
    """A SELECT of one row per array element, for ``insert(model).from_select(names, …)``.

    The statement has one parameter per column: ``prefix`` and the column's name. Its value is an
    array. :func:`as_arrays` makes these arrays.
    """
    columns = [column(name, model.__table__.c[name].type) for name in names]
    arrays = []
    for each in columns:
        type_ = ARRAY(each.type, dimensions=1)
        arrays.append(cast(bindparam(prefix + each.name, type_=type_), type_))
    rows = func.unnest(*arrays).table_valued(*columns, name="new").render_derived()
    return select(*(rows.c[name] for name in names))


def as_arrays(rows: Sequence[Mapping[str, Any]], prefix: str = "") -> dict[str, list[Any]]:
    """The columns of rows that all have the same keys; at least one row."""
    return {prefix + name: [row[name] for row in rows] for name in rows[0]}


@contextmanager
def inserts_in_one_statement() -> Iterator[None]:
    """Insert the rows of the block at its end, by one statement; none if the block raises.

    So no statement of the block sees them, and what violates a unique constraint raises
    UniqueViolation at the end.
    """
    rows: dict[Any, list[dict[str, Any]]] = {}
    context()[COLLECTED_ROWS] = rows
    try:
        yield
    finally:
        del context()[COLLECTED_ROWS]
    if rows:
        values: dict[str, list[Any]] = {}
        for model in rows:
            values |= as_arrays(rows[model], prefix=_prefix(model))
        _insert(*sorted(rows, key=_prefix)).execute(**values)


def update_rows(
    model: type[R],
    rows: Sequence[tuple[R, Mapping[str, Any]]],
    *,
    actor_id: str | None = None,
) -> list[tuple[R, Change | None]]:
    """:func:`app.core.db.queries.update_row` of each row with its values, by one statement."""
    described: Any = model
    stamp: dict[str, Any] = {"updated_at": utcnow()}
    if actor_id is not None and issubclass(model, Attributed):
        stamp["updated_by_user_id"] = actor_id
    results: list[tuple[Any, Change | None]] = []
    written: list[Any] = []
    changed: set[str] = {*stamp, "version"}
    for row, values in rows:
        old: Any = row
        after = {name: new for name, new in values.items() if differs(getattr(old, name), new)}
        if not after:
            results.append((old, None))
            continue
        changed |= after.keys()
        before = {name: getattr(old, name) for name in after}
        written.append(old._replace(**after, **stamp, version=old.version + 1))
        results.append((written[-1], Change(before, after)))
    if written:
        columns = described.__table__.columns
        names = tuple(each.name for each in columns if each.primary_key or each.name in changed)
        arrays = as_arrays([{name: getattr(row, name) for name in names} for row in written])
        if _update(described, names).execute(**arrays) != len(written):
            raise RowChanged(described.__table__.name)
    return results


@lru_cache(maxsize=100)
def _insert(*models: Any) -> Statement:
    """The tables' foreign keys may refer to one another: they are checked after all inserts."""
    inserts = []
    for model in models:
        names = [column.name for column in written_columns(model)]
        new = rows_from_arrays(model, names, prefix=_prefix(model))
        inserts.append(insert(model).from_select(names, new, include_defaults=False))
    *others, last = inserts
    tables = "_".join(model.__table__.name for model in models)
    return Statement(f"{tables}.insert_many", last.add_cte(*(each.cte() for each in others)))


def _prefix(model: Any) -> str:
    return f"{model.__table__.name}_"


@lru_cache(maxsize=100)
def _update(model: Any, names: tuple[str, ...]) -> Statement:
    table = model.__table__
    new = rows_from_arrays(model, names).subquery("written").c
    same = [column == new[column.name] for column in table.primary_key]
    clause = update(table).where(*same, table.c.version == new.version - 1)
    values = {name: new[name] for name in names if not table.c[name].primary_key}
    return Statement(f"{table.name}.update_many", clause.values(values))

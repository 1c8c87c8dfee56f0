"""Statements that write many rows: INSERT and DELETE, also of several tables at once, and UPDATE.

Each column is sent as one array. So the text of the statement does not depend on the number of
rows, and the statement can be prepared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import ARRAY, Select, bindparam, cast, column, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from app.core.clock import utcnow
from app.core.db.models import Attributed, Row
from app.core.db.queries import COLLECTED_ROWS, Change, insert_into, written_columns
from app.core.db.statements import Statement
from app.core.db.transactions import RowChanged, context
from app.core.json_text import differs

R = TypeVar("R", bound=Row)

COLLECTED_KEYS = "collected_keys"
Part = tuple[Callable[[Any], Any], Any]  # a function that makes a clause, and its model


def rows_from_arrays(model: Any, names: Sequence[str], prefix: str = "") -> Select[Any]:
    """A SELECT of one row per array element, for ``insert(model).from_select(names, …)``.

    The statement has one parameter per column: ``prefix`` and the column's name. Its value is an
    array. :func:`as_arrays` makes these arrays.

    Each array is a subquery, whose length PostgreSQL does not know when it plans. Otherwise it would
    plan the prepared statement anew each time, for the number of rows, which costs more than to run it.
    """
    columns = [column(name, model.__table__.c[name].type) for name in names]
    arrays = []
    for each in columns:
        type_ = ARRAY(each.type, dimensions=1)
        array = cast(bindparam(prefix + each.name, type_=type_), type_)
        arrays.append(select(array).scalar_subquery())
    rows = func.unnest(*arrays).table_valued(*columns, name="new").render_derived()
    return select(*(rows.c[name] for name in names))


def as_arrays(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The columns of rows that all have the same keys; at least one row."""
    return {name: [row[name] for row in rows] for name in rows[0]}


@contextmanager
def inserts_in_one_statement() -> Iterator[None]:
    """Insert the rows of the block at its end, by one statement; none if the block raises.

    So no statement of the block sees them, and what violates a unique constraint raises
    UniqueViolation at the end. A block inside another one belongs to that one.
    """
    if COLLECTED_ROWS in context():
        yield
        return
    rows: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    keys: dict[Any, dict[tuple[Any, ...], bool]] = {}
    context().update({COLLECTED_ROWS: rows, COLLECTED_KEYS: keys})
    try:
        yield
    finally:
        del context()[COLLECTED_ROWS], context()[COLLECTED_KEYS]
    if not keys and sum(map(len, rows.values())) == 1:
        [(models, [row])] = rows.items()
        insert_into(models, row)  # its statement is smaller
    else:
        _write(rows, keys)


def write_keys(
    model: Any, *, added: Iterable[tuple[Any, ...]], removed: Iterable[tuple[Any, ...]] = ()
) -> None:
    """Insert and delete rows of a table whose columns are all part of its primary key.

    It is one statement, or in a block of :func:`inserts_in_one_statement` a part of its statement.
    Rows to insert may exist already, and rows to delete may be missing. For a row that is added and
    removed in one block, the last call counts.
    """
    collected: dict[Any, dict[tuple[Any, ...], bool]] | None = context().get(COLLECTED_KEYS)
    keys = {} if collected is None else collected
    wanted = dict.fromkeys(removed, False) | dict.fromkeys(added, True)
    if wanted:
        keys.setdefault(model, {}).update(wanted)
    if collected is None:
        _write({}, keys)


def update_rows(
    model: type[R],
    rows: Sequence[tuple[R, Mapping[str, Any]]],
    *,
    actor_id: str | None = None,
    also: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
) -> list[tuple[R, Change | None]]:
    """:func:`app.core.db.queries.update_row` of each row with its values, by one statement.

    ``also`` gives the further columns that are set with a row's changed values.
    """
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
        further = also(after) if also else {}
        changed |= after.keys() | further.keys()
        before = {name: getattr(old, name) for name in after}
        written.append(old._replace(**after, **further, **stamp, version=old.version + 1))
        results.append((written[-1], Change(before, after)))
    if written:
        columns = described.__table__.columns
        names = tuple(each.name for each in columns if each.primary_key or each.name in changed)
        arrays = as_arrays([{name: getattr(row, name) for name in names} for row in written])
        if _update(described, names).execute(**arrays) != len(written):
            raise RowChanged(described.__table__.name)
    return results


def _write(
    rows: Mapping[tuple[Any, ...], Sequence[Mapping[str, Any]]],
    keys: Mapping[Any, Mapping[tuple[Any, ...], bool]],
) -> None:
    """Insert ``rows``, and insert or delete ``keys``, by one statement.

    Each of ``rows`` has the values of one row in each of some tables.
    """
    by_model: dict[Any, list[Mapping[str, Any]]] = {}
    for models, new in rows.items():
        for model in models:
            by_model.setdefault(model, []).extend(new)
    parts: list[Part] = [(_insert, model) for model in by_model]
    values: dict[str, list[Any]] = {}
    for model, new in by_model.items():
        prefix = _prefix(_insert, model)
        for each in written_columns(model):
            values[prefix + each.name] = [row[each.name] for row in new]
    for model, wanted in keys.items():
        for make, is_wanted in ((_insert_missing, True), (_delete_keys, False)):
            chosen = [key for key, is_added in wanted.items() if is_added is is_wanted]
            if chosen:
                parts.append((make, model))
                names = (_prefix(make, model) + name for name in model.__table__.columns.keys())  # noqa: SIM118
                values |= zip(names, map(list, zip(*chosen, strict=True)), strict=True)
    if parts:
        _statement(*sorted(parts, key=lambda part: _prefix(*part))).execute(**values)


@lru_cache(maxsize=100)
def _statement(*parts: Part) -> Statement:
    """The tables' foreign keys may refer to one another: they are checked after all inserts."""
    *others, last = (make(model) for make, model in parts)
    tables = "_".join(dict.fromkeys(model.__table__.name for _, model in parts))
    return Statement(f"{tables}.insert_many", last.add_cte(*(each.cte() for each in others)))


def _insert(model: Any) -> Any:
    names = [column.name for column in written_columns(model)]
    new = rows_from_arrays(model, names, prefix=_prefix(_insert, model))
    return insert(model).from_select(names, new, include_defaults=False)


def _insert_missing(model: Any) -> Any:
    names = model.__table__.columns.keys()
    new = rows_from_arrays(model, names, prefix=_prefix(_insert_missing, model))
    return insert(model).from_select(names, new).on_conflict_do_nothing()


def _delete_keys(model: Any) -> Any:
    columns = model.__table__.columns
    gone = rows_from_arrays(model, columns.keys(), prefix=_prefix(_delete_keys, model))
    same = gone.subquery("gone").c
    return delete(model).where(*(column == same[column.name] for column in columns))


def _prefix(make: Callable[[Any], Any], model: Any) -> str:
    """What the names of the parameters of one part of a statement begin with."""
    return f"{model.__table__.name}{make.__name__}_"


@lru_cache(maxsize=100)
def _update(model: Any, names: tuple[str, ...]) -> Statement:
    table = model.__table__
    new = rows_from_arrays(model, names).subquery("written").c
    same = [column == new[column.name] for column in table.primary_key]
    clause = update(table).where(*same, table.c.version == new.version - 1)
    values = {name: new[name] for name in names if not table.c[name].primary_key}
    return Statement(f"{table.name}.update_many", clause.values(values))

"""Inserts: of one row at once, or of many rows by one statement at the end of a block.

A function that adds rows has a parameter ``into``: the :class:`Writes` of its caller's block. The
rows are then inserted at the end of that block. Without ``into`` they are inserted at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any, TypeVar

from sqlalchemy import Column, Delete, Table, bindparam, delete
from sqlalchemy.dialects.postgresql import Insert, insert

from app.core.db.bulk import rows_from_arrays
from app.core.db.queries import Conflicts, raising
from app.core.db.statements import Statement
from app.core.errors import Conflict
from app.extensions import Model

M = TypeVar("M", bound=Model)
Values = Mapping[str, object]
Key = tuple[object, ...]
Part = tuple[Callable[[Table, str], Insert | Delete], Table]
"""One table's part of a statement: the function that builds the part, and the table."""


def insert_row(model: type[M], values: Values, *, conflicts: Conflicts | None = None) -> M:
    """Insert a row at once and return it. Columns not in ``values`` get the model's defaults.

    ``conflicts`` maps the names of unique constraints to errors. If the row violates a constraint,
    its error is raised. So only one of two simultaneous requests succeeds.
    """
    with writes() as w:
        return w.insert(model, values, conflicts=conflicts)


class Writes:
    """Collects the rows that a block of :func:`writes` inserts and deletes at its end.

    Until then other statements in the block do not see these changes.
    """

    def __init__(self) -> None:
        self._rows: list[tuple[tuple[Table, ...], Values]] = []
        self._keys: defaultdict[Table, dict[Key, bool]] = defaultdict(dict)
        self._conflicts: dict[str, type[Conflict]] = {}

    def insert(self, model: type[M], values: Values, *, conflicts: Conflicts | None = None) -> M:
        """Add a row and return it, as :func:`insert_row` does. The block's end inserts it.

        The errors of ``conflicts`` are raised at the end of the block, too.
        """
        table = model.__table__
        unknown = values.keys() - table.columns.keys()
        if unknown:
            raise TypeError(f"{table.name} has no column {', '.join(sorted(unknown))}")
        self._conflicts.update(conflicts or {})
        row = self.insert_into([model], values)
        return model._make(row[column.name] for column in table.columns)

    def insert_into(self, models: Iterable[type[Model]], values: Values) -> Values:
        """Add one row to each table. Columns of the same name get the same value."""
        tables = tuple(model.__table__ for model in models)
        row = values
        for table in tables:
            row = with_defaults(table, row)
        self._rows.append((tables, row))
        return row

    def change_keys(
        self, model: type[Model], *, added: Iterable[Key] = (), removed: Iterable[Key] = ()
    ) -> None:
        """Insert and delete rows of a table whose columns are all part of its primary key.

        Rows to insert may already exist, and rows to delete may be missing. If several calls in one
        block name the same row, the last call counts.
        """
        self._keys[model.__table__] |= dict.fromkeys(removed, False) | dict.fromkeys(added, True)

    def send(self) -> None:
        """Send the statement, unless nothing was added."""
        with raising(self._conflicts):
            if len(self._rows) == 1 and not any(self._keys.values()):
                [(tables, row)] = self._rows
                _insert_one(*tables).execute(**row)  # saves 50 µs, and values may be arrays
            else:
                self._send_arrays()

    def _send_arrays(self) -> None:
        parts: defaultdict[Part, list[Values]] = defaultdict(list)
        for tables, row in self._rows:
            for table in tables:
                parts[insert_arrays, table].append(row)
        for table, keys in self._keys.items():
            for key, is_added in keys.items():
                row = dict(zip(table.columns.keys(), key, strict=True))
                parts[_insert_missing if is_added else _delete_keys, table].append(row)
        arrays = {
            _prefix(*part) + column.name: [row[column.name] for row in rows]
            for part, rows in parts.items()
            for column in _written(part[1])
        }
        if parts:
            _insert_many(*sorted(parts, key=lambda part: _prefix(*part))).execute(**arrays)


@contextmanager
def writes(into: Writes | None = None) -> Iterator[Writes]:
    """Insert the rows that the block adds to the Writes, by one statement at the end of the block.

    Nothing is inserted if the block raises. If a row violates a unique constraint, the end of the
    block raises the error that ``conflicts`` of :meth:`Writes.insert` names for the constraint, or
    UniqueViolation if it names none. With ``into``, this block is part of a larger block, and the
    larger block's end inserts the rows.
    """
    w = Writes() if into is None else into
    yield w
    if into is None:
        w.send()


def with_defaults(table: Table, values: Values) -> dict[str, object]:
    """The values of a new row, with the defaults of the columns that have none."""
    row = dict(values)
    for column in table.columns:
        if column.name == "updated_at" and "created_at" in row:
            row.setdefault("updated_at", row["created_at"])
        elif column.name not in row:
            row[column.name] = _default(column)
    return row


def _default(column: Column[object]) -> object:
    default: Any = column.default
    if default is None:
        return None
    return default.arg(None) if default.is_callable else default.arg


@cache
def _written(table: Table) -> tuple[Column[object], ...]:
    """The columns that an INSERT writes: all except identity columns."""
    return tuple(column for column in table.columns if column.identity is None)


@cache
def _insert_one(*tables: Table) -> Statement[object]:
    """An INSERT of one row into each table. Columns of the same name share a parameter."""
    first, *others = (
        insert(table).values({c.name: bindparam(c.name, type_=c.type) for c in _written(table)})
        for table in tables
    )
    clause = first.inline().add_cte(*(each.inline().cte() for each in others))
    return Statement(f"{tables[0].name}.insert", clause)


@lru_cache(maxsize=100)
def _insert_many(*parts: Part) -> Statement[object]:
    """One statement for all parts. Their order is free: foreign keys are checked at its end."""
    *others, last = (build(table, _prefix(build, table)) for build, table in parts)
    tables = "_".join(dict.fromkeys(table.name for _, table in parts))
    return Statement(f"{tables}.insert_many", last.add_cte(*(each.cte() for each in others)))


def insert_arrays(table: Table, prefix: str = "") -> Insert:
    """An INSERT of rows whose columns are sent as arrays, see :func:`rows_from_arrays`."""
    names = [column.name for column in _written(table)]
    new = rows_from_arrays(table, names, prefix=prefix)
    return insert(table).from_select(names, new, include_defaults=False)


def _insert_missing(table: Table, prefix: str) -> Insert:
    return insert_arrays(table, prefix).on_conflict_do_nothing()


def _delete_keys(table: Table, prefix: str) -> Delete:
    gone = rows_from_arrays(table, table.columns.keys(), prefix=prefix).subquery("gone").c
    return delete(table).where(*(column == gone[column.name] for column in table.columns))


def _prefix(build: Callable[[Table, str], Insert | Delete], table: Table) -> str:
    """The prefix of the parameters' names of one part of a statement."""
    return f"{table.name}{build.__name__}_"

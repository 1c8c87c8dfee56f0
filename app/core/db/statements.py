"""SQL statements: built with SQLAlchemy Core at import, compiled once, run on psycopg2's cursor.

The ORM's session is not used: for one row it takes several times as much CPU time as PostgreSQL
itself does. Without it this service answers 40 to 50 % more requests per second.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import cache, cached_property, lru_cache
from typing import Any, ParamSpec, cast

import psycopg2
from psycopg2.extensions import cursor
from sqlalchemy import ARRAY, Executable, UpdateBase
from sqlalchemy.dialects import postgresql
from sqlalchemy.types import TypeEngine

from app.core import json_text
from app.core.db.transactions import current_transaction

DIALECT = postgresql.dialect(  # type: ignore[no-untyped-call]
    json_serializer=json_text.dumps_text, json_deserializer=json_text.loads
)

Convert = Callable[[Any], Any]
P = ParamSpec("P")


class Statement:
    """A named SQL statement. Traces and ``pg_stat_statements`` show the name.

    Values that change from call to call are ``bindparam``; calls give them by name. ``IN`` of a
    list is not supported: compare with ``any_`` of an array.

    A row is an immutable named tuple. If the statement selects exactly one model, a row has the
    model's columns. Otherwise a row has one element for each selected item, and a selected model is
    a row inside the row.

    ``prepare=False`` is for statements whose best plan depends on their values. ``as_json=True`` is
    for rows that are only written as JSON (see :mod:`app.core.db.json_rows`).
    """

    def __init__(
        self, name: str, clause: Executable, *, prepare: bool = True, as_json: bool = False
    ) -> None:
        self.name = name
        self.clause = clause
        self.prepare = prepare
        self.as_json = as_json
        self.writes = isinstance(clause, UpdateBase)
        self._read: Callable[[Sequence[Any]], Any] | None = None

    def all(self, **values: Any) -> list[Any]:
        """All rows."""
        result = self._run(values)
        read = self._reader(result)
        return [read(row) for row in result.fetchall()]

    def first(self, **values: Any) -> Any:
        """The first row, or None."""
        result = self._run(values)
        row = result.fetchone()
        return None if row is None else self._reader(result)(row)

    def scalars(self, **values: Any) -> list[Any]:
        """The first column of each row."""
        return [row[0] for row in self.all(**values)]

    def scalar(self, **values: Any) -> Any:
        """The first column of the first row; None where there is no row."""
        row = self.first(**values)
        return None if row is None else row[0]

    def execute(self, **values: Any) -> int:
        """Run a statement without a result; the number of rows it changed."""
        return self._run(values).rowcount

    @cached_property
    def text(self) -> str:
        """The SQL, with psycopg2's placeholders; it begins with the name as a comment."""
        return f"/* {self.name} */ {self._compiled.string}"

    @cached_property
    def constants(self) -> dict[str, Any]:
        """The values that are part of the statement, as psycopg2 takes them."""
        given = {
            name: value
            for name, value in self._compiled.params.items()
            if name not in self.required
        }
        for name in given.keys() & self._conversions.keys():
            given[name] = self._conversions[name](given[name])
        return given

    @cached_property
    def required(self) -> tuple[str, ...]:
        """The names of the values that each call gives."""
        return tuple(name for name, bind in self._compiled.binds.items() if bind.required)

    @cached_property
    def placeholders(self) -> str:
        """psycopg2's placeholders of :attr:`required`, in parentheses; an array has a cast.

        PostgreSQL cannot tell the type of an array that is empty, or of NULLs or JSON.
        """
        types = [self._compiled.binds[name].type for name in self.required]
        casts = [f"::{each.compile(DIALECT)}" if isinstance(each, ARRAY) else "" for each in types]
        return f"({', '.join(f'%s{cast}' for cast in casts)})" if casts else ""

    @cached_property
    def _compiled(self) -> Any:
        return self.clause.compile(dialect=DIALECT)  # type: ignore[attr-defined]

    @cached_property
    def _conversions(self) -> dict[str, Convert]:
        """Functions that convert Python's values to psycopg2's, by parameter."""
        found = {
            name: _implementation(bind.type).bind_processor(DIALECT)
            for name, bind in self._compiled.binds.items()
        }
        return {name: convert for name, convert in found.items() if convert is not None}

    def _run(self, values: dict[str, Any]) -> cursor:
        for name, convert in self._conversions.items():
            if name in values:
                values[name] = convert(values[name])
        current = current_transaction()
        prepared = current.prepared if self.prepare else None
        message = prepared.message(current.cursor, self, values) if prepared else None
        text, parameters = message or (self.text, {**self.constants, **values})
        try:
            result = current.execute(
                text, parameters, name=self.name, template=self.text, as_json=self.as_json
            )
        except psycopg2.Error:
            if prepared is not None and isinstance(text, bytes):  # it prepares the statement
                prepared.note_failure(self)
            raise
        if self.writes and result.rowcount > 0:
            current.has_written = True
        return result

    def _reader(self, result: cursor) -> Callable[[Sequence[Any]], Any]:
        """The function that turns psycopg2's tuple into a row; built from the first result."""
        if self._read is None:
            self._read = _make_reader(self.clause, result.description or ())
        return self._read


def built_once(build: Callable[P, Statement]) -> Callable[P, Statement]:
    """``functools.cache`` for a function that builds a statement; it keeps the arguments' types."""
    return cast("Callable[P, Statement]", cache(build))


@lru_cache(maxsize=1000)
def row_class(title: str, names: tuple[str, ...]) -> Any:
    """The class of immutable rows with these columns."""
    fields = namedtuple("Row", names, rename=True)  # type: ignore[misc]

    class Row(fields):
        __slots__ = ()

        def __reduce__(self) -> Any:
            return _restore, (title, names, tuple(self))

    Row.__name__ = Row.__qualname__ = title
    return Row


def _restore(title: str, names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    """A row that was pickled."""
    return row_class(title, names)._make(values)


def _implementation(type_: TypeEngine[Any]) -> TypeEngine[Any]:
    return type_.dialect_impl(DIALECT)


def _make_reader(clause: Any, description: Sequence[Any]) -> Callable[[Sequence[Any]], Any]:
    """Build the function that turns psycopg2's tuple into a row."""
    names = tuple(column.name for column in description)
    models = _models(clause)
    plain = row_class(models[0].__name__ if len(models) == 1 and models[0] else "Row", names)._make
    make = plain if len(models) == 1 or not any(models) else _nested_reader(clause, models)
    conversions = _result_conversions(clause, description)
    if not conversions:
        return make

    def read(found: Sequence[Any]) -> Any:
        values = list(found)
        for place, convert in conversions:
            values[place] = convert(values[place])
        return make(values)

    return read


def _models(clause: Any) -> list[Any]:
    """The model that each item of a SELECT is; None for an item that is a single column."""
    return [
        item["expr"] if isinstance(item["expr"], type) else None
        for item in getattr(clause, "column_descriptions", ())
    ]


def _nested_reader(clause: Any, models: list[Any]) -> Callable[[Sequence[Any]], Any]:
    """The reader for a SELECT of models and other items; each model becomes a row in the row."""
    parts, start = [], 0
    for model in models:
        names = () if model is None else tuple(model.__table__.columns.keys())
        stop = start + (len(names) or 1)
        parts.append((start, stop, row_class(model.__name__, names) if names else None))
        start = stop
    outer = row_class("Row", tuple(item["name"] for item in clause.column_descriptions))
    return lambda found: outer._make(
        found[start] if row is None else row._make(found[start:stop]) for start, stop, row in parts
    )


def _result_conversions(clause: Any, description: Sequence[Any]) -> list[tuple[int, Convert]]:
    """Functions that convert psycopg2's values to Python's, by column index."""
    columns = getattr(clause, "exported_columns", ())
    return [
        (place, convert)
        for place, column in enumerate(columns)
        if (
            convert := _implementation(column.type).result_processor(
                DIALECT, description[place].type_code
            )
        )
    ]

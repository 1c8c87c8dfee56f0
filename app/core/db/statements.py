"""SQL statements: built with SQLAlchemy Core at import, compiled once, run on psycopg2's cursor.

The ORM's session is not used: for one row it takes several times as much processor time as
PostgreSQL itself. Without the session this service answers 40 to 50 % more requests per second.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar, overload

from psycopg2.extensions import cursor
from sqlalchemy import ARRAY, Executable, Select, UpdateBase, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.sql.compiler import SQLCompiler

from app.core import json_text
from app.core.db.transactions import current_transaction
from app.core.errors import NotFound
from app.extensions import Model

DIALECT = postgresql.dialect(  # type: ignore[no-untyped-call]
    json_serializer=json_text.dumps_text, json_deserializer=json_text.loads
)

R = TypeVar("R")
M = TypeVar("M", bound=Model)


class Statement(Generic[R]):
    """A named SQL statement. Traces and ``pg_stat_statements`` show the name.

    Values that change from call to call are ``bindparam``, or ``:name`` in SQL text. Calls pass them
    by name. ``IN`` with a list is not supported: use ``any_`` with an array.

    A row is an immutable named tuple. If the statement selects exactly one model, its rows are rows
    of that model, and the type checker knows their type. Otherwise a row has one element for each
    selected item. If such an item is a model, the element is a row of the model.

    Use ``prepare=False`` if the best plan depends on the values. Use ``as_json=True`` for rows that
    are only written as JSON (see :mod:`app.core.db.json_rows`).
    """

    @overload
    def __init__(
        self: Statement[M], name: str, clause: Select[tuple[M]], *, prepare: bool = True
    ) -> None: ...
    @overload
    def __init__(
        self: Statement[Any],
        name: str,
        clause: Executable | str,
        *,
        prepare: bool = True,
        as_json: bool = False,
    ) -> None: ...
    def __init__(
        self, name: str, clause: Executable | str, *, prepare: bool = True, as_json: bool = False
    ) -> None:
        self.name = name
        self.clause = text(clause) if isinstance(clause, str) else clause
        self.prepare = prepare
        self.as_json = as_json
        self.writes = isinstance(clause, UpdateBase)
        self._make: Callable[[Iterable[object]], R] | None = None

    def all(self, **values: object) -> list[R]:
        result = self._run(values)
        return list(map(self._make or self._maker(result), result.fetchall()))

    def first(self, **values: object) -> R | None:
        """The first row, or None."""
        result = self._run(values)
        row = result.fetchone()
        return None if row is None else (self._make or self._maker(result))(row)

    def get(self, of: type | str, /, **values: object) -> R:
        """The first row; raises NotFound for the model, or for this name, if there is no row."""
        row = self.first(**values)
        if row is None:
            raise NotFound.of(of)
        return row

    def one(self, **values: object) -> R:
        """The first row of a statement that always returns a row; LookupError otherwise."""
        row = self.first(**values)
        if row is None:
            raise LookupError(f"{self.name} found no row")
        return row

    def scalars(self, **values: object) -> list[Any]:
        """The first column of each row."""
        return [row[0] for row in self._run(values).fetchall()]

    def scalar(self, **values: object) -> Any:
        """The first column of the first row; None if there is no row."""
        row = self._run(values).fetchone()
        return None if row is None else row[0]

    def execute(self, **values: object) -> int:
        """Run a statement for its effect, and return the number of rows that it changed."""
        return self._run(values).rowcount

    @cached_property
    def text(self) -> str:
        """The SQL with psycopg2's placeholders. A comment with the name comes first."""
        return f"/* {self.name} */ {self._compiled.string}"

    @cached_property
    def constants(self) -> dict[str, object]:
        """The values that are fixed in the clause, by parameter, converted for psycopg2."""
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
        """The names of the values that each call must pass."""
        return tuple(name for name, bind in self._compiled.binds.items() if bind.required)

    @cached_property
    def placeholders(self) -> str:
        """psycopg2's placeholders for :attr:`required`, in parentheses. Arrays have a cast.

        PostgreSQL cannot infer the type of an array that is empty, or has only NULLs or JSON.
        """
        types = [self._compiled.binds[name].type for name in self.required]
        casts = [f"::{each.compile(DIALECT)}" if isinstance(each, ARRAY) else "" for each in types]
        return f"({', '.join(f'%s{cast}' for cast in casts)})" if casts else ""

    @cached_property
    def _compiled(self) -> SQLCompiler:
        compiled: SQLCompiler = self.clause.compile(dialect=DIALECT)  # type: ignore[attr-defined]
        return compiled

    @cached_property
    def _conversions(self) -> dict[str, Callable[[object], object]]:
        """Functions that convert values for psycopg2, by parameter."""
        found = {
            name: bind.type.dialect_impl(DIALECT).bind_processor(DIALECT)
            for name, bind in self._compiled.binds.items()
        }
        return {name: convert for name, convert in found.items() if convert is not None}

    def _run(self, values: dict[str, object]) -> cursor:
        for name, convert in self._conversions.items():
            if name in values:
                values[name] = convert(values[name])
        current = current_transaction()
        prepared = current.prepared if self.prepare else None
        message = prepared.message(current.cursor, self, values) if prepared else None
        text, parameters = message or (self.text, {**self.constants, **values})
        result = current.execute(
            text, parameters, name=self.name, template=self.text, as_json=self.as_json
        )
        if self.writes and result.rowcount > 0:
            current.has_written = True
        return result

    def _maker(self, result: cursor) -> Callable[[Iterable[object]], R]:
        """The function that makes a row of psycopg2's tuple. It is built at the first result."""
        self._make = _maker(self.clause, [column.name for column in result.description or ()])
        return self._make


def _maker(clause: Executable, names: Sequence[str]) -> Callable[[Any], Any]:
    """A function that makes a row of the values of the columns ``names``."""
    items = getattr(clause, "column_descriptions", ())  # only a SELECT has them
    classes: list[Any] = [getattr(item["expr"], "row_class", None) for item in items]
    if not any(classes):
        make: Callable[[Any], Any] = _row_class(tuple(names))._make
    elif len(classes) == 1:
        make = classes[0]._make
    else:
        make = _nested_maker(_row_class(tuple(item["name"] for item in items)), classes)
    return make


def _nested_maker(outer: Any, classes: Sequence[Any]) -> Callable[[Any], Any]:
    """:func:`_maker` for a SELECT of models and other items: each model becomes an inner row."""
    parts, start = [], 0
    for row in classes:
        stop = start + (len(row._fields) if row else 1)
        parts.append((start, stop, row))
        start = stop
    return lambda found: outer._make(
        row._make(found[start:stop]) if row else found[start] for start, stop, row in parts
    )


@lru_cache(maxsize=1000)
def _row_class(names: tuple[str, ...]) -> Any:
    """The class of rows with these columns, for rows that are not a model's."""
    return namedtuple("Row", names, rename=True)

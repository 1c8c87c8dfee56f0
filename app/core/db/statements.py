"""Statements as requests run them: built with SQLAlchemy, compiled once, sent without its Session.

On a statement about one row the ORM's session spends several times what PostgreSQL does. Here the
compiled text goes straight to the transaction's own psycopg2 connection, and the answer becomes
plain rows: of a model the attributes can be read, not set (:meth:`app.core.db.models.Row.assign`
changes a row), and the session knows nothing of them.

The session stays for what is rare. Both use one connection, and what the session has pending goes
first, so everything happens in the order in which it was written down.

A statement that is ``whole`` locks nothing, leaves nothing to be undone with what else its
transaction does, and may be run twice, as it is where its connection is lost: most reads. Before
anything that is not, PostgreSQL runs it without BEGIN, so a request that only reads needs no COMMIT,
and what it writes is durable when it answers.

Build statements once, with ``bindparam``, and :func:`prepare` them; one that is built anew each
time finds its compiled form by its shape, which costs more. ``IN`` of a list is not for here.
"""

from __future__ import annotations

import hashlib
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

import psycopg2
from psycopg2.extensions import AsIs
from sqlalchemy import Column, Dialect, Executable
from sqlalchemy.orm import Mapper
from sqlalchemy.util import LRUCache

from app.core.db import connections, transactions
from app.core.db.literals import literals
from app.core.db.transactions import NONE

S = TypeVar("S", bound=Executable)
Values = Mapping[str, Any]
Convert = Callable[[Any], Any]


def prepare(statement: S, *, for_good: bool = True) -> S:
    """The statement itself, which from its first use on keeps its compiled form, for good.

    Without ``for_good``, for what is one of very many, as long as it is among the last used.
    Connections prepare it, so its plan should be the same whatever its values are.
    """
    (_plans if for_good else _recent)[statement] = None
    return statement


def keep(statement: S) -> S:
    """The same for one of very many that nobody prepares: there are too many of them."""
    _kept[statement] = None
    return statement


def rows(statement: Executable, values: Values = NONE, *, whole: bool = False) -> list[Any]:
    """All rows, as named tuples; in ``select(User, …)`` the user is one value."""
    shape, found = _run(statement, values, whole)
    return [shape.row(row) for row in found]


def first(statement: Executable, values: Values = NONE, *, whole: bool = False) -> Any:
    """The first row, or None."""
    shape, found = _run(statement, values, whole)
    return shape.row(found[0]) if found else None


def scalars(statement: Executable, values: Values = NONE, *, whole: bool = False) -> list[Any]:
    """The first value of each row."""
    shape, found = _run(statement, values, whole)
    return [shape.scalar(row) for row in found]


def scalar(statement: Executable, values: Values = NONE, *, whole: bool = False) -> Any:
    """The first value of the first row; None where there is no row."""
    shape, found = _run(statement, values, whole)
    return shape.scalar(found[0]) if found else None


def write(statement: Executable, values: Values = NONE, *, changes_one: bool = False) -> None:
    """Run a statement without an answer, together with the next one or with the COMMIT.

    With ``changes_one`` the transaction fails, and is run again, where it does not change exactly
    one row. Other faults show where the statement is sent: call :func:`settle` to have that here.
    """
    unit = transactions.flushed()
    unit.known = None
    plan = _plan(statement, unit.engine.dialect)
    driver = unit.driver()
    driver.begin()
    _announce(unit, driver.shared, plan.text, values)
    try:
        driver.defer(plan.message(driver.shared, values, changes_one=changes_one))
    except psycopg2.Error as fault:
        unit.fail(fault, plan.text, values)


def settle() -> None:
    """Send what waits, the ORM session's too, so that a fault of it shows here."""
    unit = transactions.flushed()
    try:
        unit.driver().settle()
    except psycopg2.Error as fault:
        unit.fail(fault)


@dataclass(frozen=True)
class Known:
    """The answer of a statement that is expected next, as :func:`ask` gives it."""

    statement: Executable
    values: Values
    description: Any
    found: list[tuple[Any, ...]]


def ask(statement: Executable, values: Values, *, whole: bool) -> tuple[Any, list[tuple[Any, ...]]]:
    """The columns' description and all rows as psycopg2 has them."""
    unit = transactions.flushed()
    return _ask(unit, _plan(statement, unit.engine.dialect), values, whole)


class _Plan:
    """A statement, ready to be sent: the text, the values in it, and how values are spelt.

    Where it ``is_prepared``, connections know it as a function of what it asks for, by a name that
    no other statement has in any process.
    """

    def __init__(self, compiled: Any, given: Values, *, is_prepared: bool, for_good: bool) -> None:
        self.compiled = compiled
        self.text: str = compiled.string
        self._given = given
        self._spelling = compiled._bind_processors
        self._name = _name(self.text, given) if is_prepared else ""
        self._is_passing = not for_good
        asked = [name for name, bind in compiled.binds.items() if bind.required]
        self._places = {name: AsIs(f"${place}") for place, name in enumerate(asked, 1)}

    def parameters(self, values: Values) -> dict[str, Any]:
        parameters = {**self._given, **values}
        for name, spell in self._spelling.items():
            parameters[name] = spell(parameters[name])
        return parameters

    def message(
        self, cursor: connections.Cursor, values: Values, *, changes_one: bool = False
    ) -> bytes:
        """What is sent: the whole text, or the name of what the connection has prepared."""
        if self._name and values.keys() == self._places.keys():
            name = f"{self._name}_one" if changes_one else self._name
            definition = partial(self._definition, cursor, changes_one)
            if cursor.connection.knows(name, definition, passing=self._is_passing):
                return self._call(name, cursor, values)
        whole = cursor.mogrify(self.text, self.parameters(values))
        return connections.framed(whole, changes_one=changes_one)

    def _call(self, name: str, cursor: connections.Cursor, values: Values) -> bytes:
        if not values:
            return b"EXECUTE %s" % name.encode()
        asked = [
            self._spelling[one](values[one]) if one in self._spelling else values[one]
            for one in self._places
        ]
        spelt = literals(asked) if cursor.connection.encoding == "UTF8" else None
        if spelt is None:
            return cursor.mogrify(f"EXECUTE {name}({', '.join(['%s'] * len(asked))})", asked)
        return f"EXECUTE {name}({spelt})".encode()

    def _definition(self, cursor: connections.Cursor, changes_one: bool) -> bytes:
        parameters = {**self.parameters(NONE), **self._places}
        return connections.framed(cursor.mogrify(self.text, parameters), changes_one=changes_one)


class _Shape:
    """What the columns of an answer mean: values, and rows of models."""

    def __init__(self, statement: Any, plan: _Plan, dialect: Dialect, description: Any) -> None:
        columns = plan.compiled._result_columns
        self._conversions = [
            (place, convert)
            for place, column in enumerate(columns)
            if (convert := column[3]._cached_result_processor(dialect, description[place][1]))
        ]
        names, self._parts, place = [], [], 0
        for one in getattr(statement, "column_descriptions", None) or description:
            model: Any = one["expr"] if isinstance(one, dict) else None
            if not isinstance(model, type):
                model = None
            count = 1 if model is None else len(_mapper(model).column_attrs)
            attributes = [_attribute(model, column) for column in columns[place : place + count]]
            names.append((one["name"] if isinstance(one, dict) else one.name) or "")
            self._parts.append((place, place + count, model, attributes))
            place += count
        self._is_plain = not any(model for *_, model, _ in self._parts)
        self._named: Any = _named(names)

    def row(self, found: tuple[Any, ...]) -> Any:
        values = self._converted(found)
        if self._is_plain:
            return self._named(values)
        return self._named([_value(values, part) for part in self._parts])

    def scalar(self, found: tuple[Any, ...]) -> Any:
        return _value(self._converted(found), self._parts[0])

    def _converted(self, found: tuple[Any, ...]) -> Sequence[Any]:
        if not self._conversions:
            return found
        values = list(found)
        for place, convert in self._conversions:
            values[place] = convert(values[place])
        return values


_compiled: Any = LRUCache(500)
_plans: dict[Any, _Plan | None] = {}
_recent: Any = LRUCache(500)
_kept: Any = LRUCache(500)
_shapes: WeakKeyDictionary[Any, _Shape] = WeakKeyDictionary()


def _run(
    statement: Executable, values: Values, whole: bool
) -> tuple[_Shape, list[tuple[Any, ...]]]:
    unit = transactions.flushed()
    plan = _plan(statement, unit.engine.dialect)
    known, unit.known = unit.known, None
    if known is not None and known.statement is statement and known.values == values:
        description, found = known.description, known.found
    else:
        description, found = _ask(unit, plan, values, whole)
    shape = _shapes.get(plan.compiled)
    if shape is None:
        shape = _shapes[plan.compiled] = _Shape(statement, plan, unit.engine.dialect, description)
    return shape, found


def _ask(
    unit: transactions.Unit, plan: _Plan, values: Values, whole: bool
) -> tuple[Any, list[tuple[Any, ...]]]:
    driver = unit.driver()
    if not whole:
        driver.begin()
    cursor = driver.shared
    _announce(unit, cursor, plan.text, values)
    try:
        cursor.send(plan.message(cursor, values))
        return cursor.description, cursor.fetchall()
    except psycopg2.Error as fault:
        unit.fail(fault, plan.text, values)


def _plan(statement: Any, dialect: Dialect) -> _Plan:
    plan: _Plan | None = _plans.get(statement) or _recent.get(statement) or _kept.get(statement)
    if plan is None:
        compiled, extracted, _ = statement._compile_w_cache(
            dialect, compiled_cache=_compiled, column_keys=[]
        )
        if compiled.post_compile_params or compiled.escaped_bind_names:
            raise NotImplementedError("a statement whose text depends on its values")
        given = compiled.construct_params(extracted_parameters=extracted, _check=False)
        is_prepared = statement in _plans or statement in _recent
        plan = _Plan(compiled, given, is_prepared=is_prepared, for_good=statement in _plans)
        for plans in (_plans, _recent, _kept):
            if statement in plans:
                plans[statement] = plan
    return plan


def _name(text: str, given: Values) -> str:
    return f"statement_{hashlib.sha256(repr((text, given)).encode()).hexdigest()[:24]}"


def _named(names: list[str]) -> Any:
    """What makes a named tuple of a sequence; a name that is none is a number."""
    make: Any = namedtuple
    return make("Row", names, rename=True)._make


def _attribute(model: Any, column: Any) -> str | None:
    """The attribute that a column of an answer is, where it is one of a model."""
    if model is None:
        return None
    known = next(one for one in column[2] if isinstance(one, Column))
    return _mapper(model).get_property_by_column(known).key


def _mapper(model: Any) -> Mapper[Any]:
    return cast("Mapper[Any]", model.__mapper__)


def _value(found: Sequence[Any], part: tuple[int, int, Any, Any]) -> Any:
    start, stop, model, attributes = part
    if model is None:
        return found[start]
    row = object.__new__(model)
    row.__dict__.update(zip(attributes, found[start:stop], strict=True))
    return row


def _announce(unit: transactions.Unit, cursor: Any, text: str, parameters: Values) -> None:
    """Tell who listens for ``before_cursor_execute``, as SQLAlchemy would."""
    if unit.engine._has_events:
        connection = unit.connection()
        for listener in connection.dispatch.before_cursor_execute:
            listener(connection, cursor, text, parameters, SimpleNamespace(), False)

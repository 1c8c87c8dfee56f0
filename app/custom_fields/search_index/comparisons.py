"""Comparing the rows of the search index with what a query asks for.

Each comparison holds a plain column against a constant by a leakproof operator, or row-level
security would keep the index from being used; what that leaves open is compared beside it.
"""

from __future__ import annotations

import operator as operators
import sys
from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple

from pydantic_core import SchemaValidator, core_schema
from sqlalchemy import ColumnElement, and_, bindparam, func, or_

from app.core.validation import scalars
from app.custom_fields.models import FieldType, IndexRow
from app.custom_fields.search_index.entries import (
    DATES,
    NUMBERS,
    TEXT_KEY,
    TEXTS,
    Entry,
    entries_of,
    plain,
    text_entry,
)
from app.custom_fields.values import types

EQUAL, AT_LEAST, AT_MOST, PREFIX = "eq", "gte", "lte", "prefix"
OPERATORS = frozenset({AT_LEAST, AT_MOST, PREFIX})
Condition = Callable[..., ColumnElement[bool]]
SURROGATES = range(0xD800, 0xE000)
FROM_TEXT = {
    FieldType.BOOLEAN: SchemaValidator(core_schema.bool_schema()),
    FieldType.INTEGER: SchemaValidator(scalars.integer()),
}
"""What a query writes otherwise than JSON does."""


def operators_of(field_type: FieldType) -> frozenset[str]:
    """What can be asked of a field of that type."""
    if field_type in NUMBERS or field_type in DATES:
        return frozenset({EQUAL, AT_LEAST, AT_MOST})
    return frozenset({EQUAL, PREFIX}) if field_type in TEXTS else frozenset({EQUAL})


class Comparison(NamedTuple):
    """Which of :data:`CONDITIONS` holds, with which values."""

    condition: str
    values: tuple[Any, ...]


def compare(field_type: FieldType, operator: str, text: str) -> Comparison:
    """What rows of such a field are held to.

    Raises :class:`pydantic_core.ValidationError` for a text that is no value of the type.
    """
    if operator == PREFIX:
        return _begins_with(text)
    entry = _entry(field_type, text)
    if entry.text_key is not None:
        if entry.text_rest is None:
            return Comparison("text", (entry.text_key,))
        return Comparison("long text", (entry.text_key, entry.text_rest))
    if entry.number_value is not None:
        usual = plain(entry.number_value)
        wanted = usual if entry.exact_value is None else entry.exact_value
        return Comparison(f"number {operator}", (entry.number_value, usual, wanted))
    return Comparison(f"date {operator}", (entry.date_value,))


def condition(name: str, next_place: Callable[[], str]) -> ColumnElement[bool]:
    """One of :data:`CONDITIONS` on values that are given later, each at a place named now."""
    build = CONDITIONS[name]
    return build(*(bindparam(next_place()) for _ in signature(build).parameters))


def after_all_with(prefix: str) -> str | None:
    """The first text, by code points, after all that begin with ``prefix``; None if there is none."""
    for length in range(len(prefix), 0, -1):
        following = ord(prefix[length - 1]) + 1
        if following in SURROGATES:
            following = SURROGATES.stop
        if following <= sys.maxunicode:
            return prefix[: length - 1] + chr(following)
    return None


def _entry(field_type: FieldType, text: str) -> Entry:
    if field_type in TEXTS:
        return text_entry(text)
    value: Any = text
    if field_type in FROM_TEXT:
        value = FROM_TEXT[field_type].validate_python(text)
    else:
        types.VALIDATORS[field_type].validate_python(text)
    return entries_of(field_type, value)[0]


def _begins_with(prefix: str) -> Comparison:
    if len(prefix) <= TEXT_KEY:
        return _up_to_end("beginning", (), prefix)
    return _up_to_end("long beginning", (prefix[:TEXT_KEY],), prefix[TEXT_KEY:])


def _up_to_end(condition: str, before: tuple[str, ...], prefix: str) -> Comparison:
    end = after_all_with(prefix)
    if end is None:
        return Comparison(f"{condition} to the last", (*before, prefix))
    return Comparison(condition, (*before, prefix, end))


def _number(compared: Callable[[Any, Any], Any]) -> Condition:
    """The float finds the rows; of those with the very same float, the exact number decides."""
    found, exact = IndexRow.number_value, IndexRow.exact_value
    return lambda nearest, usual, wanted: and_(
        compared(found, nearest),
        or_(found != nearest, compared(func.coalesce(exact, usual), wanted)),
    )


def _date(compared: Callable[[Any, Any], Any]) -> Condition:
    return lambda moment: compared(IndexRow.date_value, moment)


_KEY, _REST = IndexRow.text_key, IndexRow.text_rest
_COMPARED = {EQUAL: operators.eq, AT_LEAST: operators.ge, AT_MOST: operators.le}
CONDITIONS: dict[str, Condition] = {
    "text": lambda key: and_(key == _KEY, _REST.is_(None)),
    "long text": lambda key, rest: and_(key == _KEY, rest == _REST),
    "beginning": lambda start, end: and_(start <= _KEY, end > _KEY),
    "beginning to the last": lambda start: start <= _KEY,
    "long beginning": lambda key, start, end: and_(key == _KEY, start <= _REST, end > _REST),
    "long beginning to the last": lambda key, start: and_(key == _KEY, start <= _REST),
    **{f"number {name}": _number(compared) for name, compared in _COMPARED.items()},
    **{f"date {name}": _date(compared) for name, compared in _COMPARED.items()},
}
"""What a row of the index is held to, as a function of the values."""

"""Conditions on the rows of the search index.

Row-level security uses an index only for a leakproof operator between a plain column and a
constant. So each condition compares an indexed column that way, and narrows the rest by columns
that are not indexed.
"""

from __future__ import annotations

import operator as operators
import sys
from collections.abc import Mapping, Sequence
from enum import Enum, auto
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
COMPARE = {EQUAL: operators.eq, AT_LEAST: operators.ge, AT_MOST: operators.le}
FROM_TEXT = {
    FieldType.BOOLEAN: SchemaValidator(core_schema.bool_schema()),
    FieldType.INTEGER: SchemaValidator(scalars.integer()),
}
"""The types that a query spells otherwise than JSON does."""

SURROGATES = range(0xD800, 0xE000)
AFTER_ALL_KEYS = chr(sys.maxunicode) * (TEXT_KEY + 1)  # greater than every text_key


class Form(Enum):
    """The columns that a comparison reads."""

    TEXT = auto()
    PREFIX = auto()
    LONG_PREFIX = auto()
    NUMBER = auto()
    DATE = auto()


class Shape(NamedTuple):
    """The properties of a comparison that determine its SQL, whatever its values are."""

    form: Form
    operator: str


Shapes = tuple[Shape, ...]


class Comparison(NamedTuple):
    """One comparison of a query: its shape, and the values of its parameters."""

    shape: Shape
    values: Mapping[str, object]


def operators_of(field_type: FieldType) -> frozenset[str]:
    if field_type in NUMBERS or field_type in DATES:
        return frozenset({EQUAL, AT_LEAST, AT_MOST})
    return frozenset({EQUAL, PREFIX}) if field_type in TEXTS else frozenset({EQUAL})


def compare(field_type: FieldType, operator: str, text: str) -> Comparison:
    """The comparison of such a field with ``text``, as a query gives it.

    Raises :class:`pydantic_core.ValidationError` for a text that is not a value of the type.
    """
    if operator == PREFIX:
        return _starts_with(text)
    entry = _entry(field_type, text)
    if entry.text_key is not None:
        key_and_rest = {"key": entry.text_key, "rest": entry.text_rest}
        return Comparison(Shape(Form.TEXT, operator), key_and_rest)
    if entry.number_value is not None:
        usual = plain(entry.number_value)
        exact = usual if entry.exact_value is None else entry.exact_value
        numbers = {"nearest": entry.number_value, "usual": usual, "exact": exact}
        return Comparison(Shape(Form.NUMBER, operator), numbers)
    return Comparison(Shape(Form.DATE, operator), {"moment": entry.date_value})


def all_of(shapes: Shapes, name: str) -> list[ColumnElement[bool]]:
    """The conditions of several comparisons; :func:`values_of` has the values of their parameters."""
    return [condition(shape, f"{name}_{place}") for place, shape in enumerate(shapes)]


def values_of(comparisons: Sequence[Comparison], name: str) -> dict[str, object]:
    """The values of the parameters of the comparisons' conditions."""
    return {
        f"{name}_{place}_{part}": value
        for place, comparison in enumerate(comparisons)
        for part, value in comparison.values.items()
    }


def condition(shape: Shape, name: str) -> ColumnElement[bool]:
    """The condition on :class:`IndexRow`; ``name`` begins the names of its parameters.

    A number is found by its float. Rows with the very same float are compared by the exact number.
    """

    def value(part: str) -> Any:
        return bindparam(f"{name}_{part}")

    key, rest, number = IndexRow.text_key, IndexRow.text_rest, IndexRow.number_value
    match shape.form:
        case Form.TEXT:
            return and_(key == value("key"), rest.is_not_distinct_from(value("rest")))
        case Form.PREFIX:
            return and_(key >= value("start"), key < value("end"))
        case Form.LONG_PREFIX:
            return and_(key == value("key"), func.starts_with(rest, value("start")))
        case Form.NUMBER:
            compared = COMPARE[shape.operator]
            exact = func.coalesce(IndexRow.exact_value, value("usual"))
            is_exact = or_(number != value("nearest"), compared(exact, value("exact")))
            return and_(compared(number, value("nearest")), is_exact)
        case Form.DATE:
            matches: ColumnElement[bool] = COMPARE[shape.operator](
                IndexRow.date_value, value("moment")
            )
            return matches


def after_all_with(prefix: str) -> str | None:
    """The first text, by code points, after all that start with ``prefix``; None if there is none."""
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


def _starts_with(prefix: str) -> Comparison:
    if len(prefix) > TEXT_KEY:
        values = {"key": prefix[:TEXT_KEY], "start": prefix[TEXT_KEY:]}
        return Comparison(Shape(Form.LONG_PREFIX, PREFIX), values)
    values = {"start": prefix, "end": after_all_with(prefix) or AFTER_ALL_KEYS}
    return Comparison(Shape(Form.PREFIX, PREFIX), values)

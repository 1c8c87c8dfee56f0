"""Comparing the rows of the search index with what a query asks for.

Each comparison holds a plain column against a constant by a leakproof operator, or row-level
security would keep the index from being used; what that leaves open is compared beside it.
"""

from __future__ import annotations

import sys
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_, true

from app.core.coercions import to_bool, to_int
from app.custom_fields import types
from app.custom_fields.entries import (
    DATES,
    NUMBERS,
    TEXT_KEY,
    TEXTS,
    Entry,
    entries_of,
    plain,
    text_entry,
)
from app.custom_fields.models import FieldType, IndexRow

EQUAL, AT_LEAST, AT_MOST, PREFIX = "eq", "gte", "lte", "prefix"
OPERATORS = frozenset({AT_LEAST, AT_MOST, PREFIX})
SURROGATES = range(0xD800, 0xE000)


def operators_of(field_type: FieldType) -> frozenset[str]:
    """What can be asked of a field of that type."""
    if field_type in NUMBERS or field_type in DATES:
        return frozenset({EQUAL, AT_LEAST, AT_MOST})
    return frozenset({EQUAL, PREFIX}) if field_type in TEXTS else frozenset({EQUAL})


def compare(field_type: FieldType, operator: str, text: str) -> ColumnElement[bool]:
    """The condition on an index row of such a field.

    Raises :class:`marshmallow.ValidationError` for a text that is no value of the type.
    """
    if operator == PREFIX:
        return _begins_with(text)
    entry = _entry(field_type, text)
    if entry.text_key is not None:
        return _is_text(entry)
    if entry.number_value is not None:
        return _number(operator, entry, entry.number_value)
    return _ordered(operator, IndexRow.date_value, entry.date_value)


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
    if field_type == FieldType.BOOLEAN:
        value = to_bool(text)
    elif field_type == FieldType.INTEGER:
        value = types.to_integer(to_int(text))
    else:
        types.PARSERS[field_type](text)
    return entries_of(field_type, value)[0]


def _is_text(entry: Entry) -> ColumnElement[bool]:
    rest = IndexRow.text_rest
    return and_(
        IndexRow.text_key == entry.text_key,
        rest.is_(None) if entry.text_rest is None else rest == entry.text_rest,
    )


def _begins_with(prefix: str) -> ColumnElement[bool]:
    if len(prefix) <= TEXT_KEY:
        return _between(IndexRow.text_key, prefix)
    rest = _between(IndexRow.text_rest, prefix[TEXT_KEY:])
    return and_(IndexRow.text_key == prefix[:TEXT_KEY], rest)


def _between(column: Any, prefix: str) -> ColumnElement[bool]:
    end = after_all_with(prefix)
    return and_(column >= prefix, true() if end is None else column < end)


def _number(operator: str, entry: Entry, nearest: float) -> ColumnElement[bool]:
    """The float finds the rows; of those with the very same float, the exact number decides."""
    wanted = plain(nearest) if entry.exact_value is None else entry.exact_value
    exact = _ordered(operator, func.coalesce(IndexRow.exact_value, plain(nearest)), wanted)
    found = _ordered(operator, IndexRow.number_value, nearest)
    return and_(found, or_(IndexRow.number_value != nearest, exact))


def _ordered(operator: str, column: Any, value: Any) -> ColumnElement[bool]:
    match operator:
        case "gte":
            condition: ColumnElement[bool] = column >= value
        case "lte":
            condition = column <= value
        case _:
            condition = column == value
    return condition

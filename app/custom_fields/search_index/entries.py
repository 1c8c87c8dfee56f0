"""The entries of the search index for a field's value."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

from pydantic_core import ValidationError

from app.custom_fields.models import FieldType
from app.custom_fields.values import types

TEXT_KEY = 255  # characters of a text that are indexed; the others are compared without an index

NUMBERS = frozenset({FieldType.INTEGER, FieldType.DECIMAL})
DATES = frozenset({FieldType.DATE, FieldType.DATETIME})
TEXTS = frozenset(FieldType) - NUMBERS - DATES - {FieldType.BOOLEAN}


class Entry(NamedTuple):
    """The value columns of one index row; see :class:`app.custom_fields.models.IndexRow`."""

    text_key: str | None = None
    text_rest: str | None = None
    number_value: float | None = None
    exact_value: Decimal | None = None
    date_value: datetime | None = None


def entries_of(field_type: FieldType, value: Any) -> tuple[Entry, ...]:
    """The index entries of a stored value; none where it is absent or not of the type.

    Texts are not checked against the field's rules, so that values from before the rules are found
    too.
    """
    if value is None:
        return ()
    if field_type == FieldType.MULTI_SELECT:
        options = value if isinstance(value, list) else []
        chosen = dict.fromkeys(option for option in options if isinstance(option, str))
        return tuple(text_entry(option) for option in chosen)
    if field_type in TEXTS:
        return (text_entry(value),) if isinstance(value, str) else ()
    try:
        parsed = types.VALIDATORS[field_type].validate_python(value)
    except ValidationError:
        return ()
    return (_typed_entry(field_type, parsed),)


def text_entry(text: str) -> Entry:
    return Entry(text_key=text[:TEXT_KEY], text_rest=text[TEXT_KEY:] or None)


def plain(nearest: float) -> Decimal:
    """The number that a float stands for where ``exact_value`` is null: its shortest text."""
    return Decimal(repr(nearest))


def _typed_entry(field_type: FieldType, parsed: Any) -> Entry:
    match field_type:
        case FieldType.BOOLEAN:
            return text_entry("true" if parsed else "false")
        case FieldType.DATE:
            return Entry(date_value=datetime(parsed.year, parsed.month, parsed.day, tzinfo=UTC))
        case FieldType.DATETIME:
            return Entry(date_value=parsed)
    number = Decimal(parsed)
    nearest = float(number)  # what is indexed
    return Entry(number_value=nearest, exact_value=None if plain(nearest) == number else number)

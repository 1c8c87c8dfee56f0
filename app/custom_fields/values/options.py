"""The options of select and multi_select fields."""

from __future__ import annotations

from collections.abc import Sequence

from app.core.errors import Entry, Invalid, value_error
from app.custom_fields.models import FieldType

MAX_OPTIONS = 256
WITH_OPTIONS = frozenset({FieldType.SELECT, FieldType.MULTI_SELECT})


def clean_options(field_type: FieldType, options: Sequence[str] | None) -> list[str] | None:
    """The options without repeats, in their order. Raises Invalid for those of :func:`option_errors`."""
    errors = option_errors(field_type, options)
    if errors:
        raise Invalid(*errors)
    return None if options is None else list(dict.fromkeys(options))


def option_errors(field_type: FieldType, options: Sequence[str] | None) -> list[Entry]:
    """The errors of these options for a field of that type; null is allowed for every type."""
    if options is None:
        return []
    if field_type not in WITH_OPTIONS:
        return [_fault(options, "only select and multi_select fields have options")]
    if len(set(options)) > MAX_OPTIONS:
        return [_fault(options, f"a field has at most {MAX_OPTIONS} options")]
    return []


def _fault(options: Sequence[str], reason: str) -> Entry:
    return value_error(["body", "options"], reason, options)

"""Checks of an entity's values against its tenant's custom fields, and of a field's options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from app.core.errors import Entry, Invalid, Location, value_error
from app.core.json_text import Json
from app.core.validation.messages import MAX_ENTRIES, refused
from app.custom_fields.models import FieldType
from app.custom_fields.values import types
from app.custom_fields.values.rules import Rule

MAX_OPTIONS = 256
WITH_OPTIONS = frozenset({FieldType.SELECT, FieldType.MULTI_SELECT})


def check(
    rules: Sequence[Rule], values: Mapping[str, Json], loc: Location, *, is_patch: bool
) -> None:
    """Raise Invalid, at ``[*loc, key]``, where ``values`` of an entity break a field's rules.

    ``values`` are all values, or with ``is_patch`` a merge patch (RFC 7396): then only its keys are
    checked. A patch may not remove a required value, but it may change other values of an entity
    that lacks a required value. Keys without a field are free.
    """
    found = (entry for rule in rules for entry in _errors(rule, values, loc, is_patch=is_patch))
    errors = list(islice(found, MAX_ENTRIES))
    if errors:
        raise Invalid(*errors)


def clean_options(field_type: FieldType, options: Sequence[str] | None) -> list[str] | None:
    """The options without repeats, in their order; Invalid if such a field cannot have them."""
    if options is None:
        return None
    cleaned = list(dict.fromkeys(options))
    if field_type not in WITH_OPTIONS:
        reason = "only select and multi_select fields have options"
    elif len(cleaned) > MAX_OPTIONS:
        reason = f"a field has at most {MAX_OPTIONS} options"
    else:
        return cleaned
    raise Invalid(value_error(["body", "options"], reason, options))


def _errors(
    rule: Rule, values: Mapping[str, Json], loc: Location, *, is_patch: bool
) -> Iterator[Entry]:
    """In a patch null removes the value; otherwise it is not a value of any type."""
    is_absent = rule.key not in values
    is_removed = is_patch and not is_absent and values[rule.key] is None
    if is_removed or (is_absent and not is_patch):
        if rule.is_required:
            yield refused("missing", (*loc, rule.key), values)
    elif not is_absent:
        value = values[rule.key]
        yield from types.faults(rule.field_type, rule.options, value, (*loc, rule.key))

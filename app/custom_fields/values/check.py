"""Validation of an entity's values by the custom fields of its tenant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from app.core.errors import Entry, Invalid, Location
from app.core.validation.messages import MAX_ENTRIES, refused
from app.custom_fields.values import types
from app.custom_fields.values.rules import Rule, rules_of


def check_patch(
    tenant_id: UUID,
    entity_type: str,
    before: Mapping[str, Any],
    patch: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    loc: Location = ("body", "patches"),
) -> None:
    """Raise Invalid, at ``[*loc, key]``, where a merge patch (RFC 7396) breaks a field's rules.

    Only the keys of the patch are checked. A required field cannot be removed, but an entity that
    lacks it can be patched otherwise. Keys without an active field take any value.
    """
    _refuse(rules_of(tenant_id, entity_type), patch, loc, is_whole=False)


def check_values(
    rules: Sequence[Rule], values: Mapping[str, Any], *, loc: Location = ("body", "values")
) -> None:
    """Raise Invalid, at ``[*loc, key]``, for each value that breaks a rule and each required one that is missing.

    ``values`` are all values of the entity. null is a value of no type.
    """
    _refuse(rules, values, loc, is_whole=True)


def _refuse(
    rules: Sequence[Rule], values: Mapping[str, Any], loc: Location, *, is_whole: bool
) -> None:
    errors = [
        fault
        for rule in rules
        for fault in (
            _value_faults(rule, values, loc, null_removes=not is_whole)
            if rule.key in values
            else _missing(rule, values, loc, is_whole)
        )
    ]
    if errors:
        raise Invalid(*errors[:MAX_ENTRIES])


def _missing(
    rule: Rule, values: Mapping[str, Any], loc: Location, is_wanted: bool
) -> Iterator[Entry]:
    if is_wanted and rule.is_required:
        yield refused("missing", (*loc, rule.key), values)


def _value_faults(
    rule: Rule, values: Mapping[str, Any], loc: Location, *, null_removes: bool
) -> Iterator[Entry]:
    value = values[rule.key]
    if value is None and null_removes:
        yield from _missing(rule, values, loc, is_wanted=True)
        return
    yield from types.faults(rule.field_type, rule.options, value, (*loc, rule.key))

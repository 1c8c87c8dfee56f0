"""Metadata: checked by the custom fields, merged by patches, and indexed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from app.audit.service import record
from app.core import json_text
from app.core.actors import Actor
from app.core.db import queries
from app.core.errors import Invalid, Location, value_error
from app.custom_fields.entities import Entity, R
from app.custom_fields.search_index import writer
from app.custom_fields.values import check as values
from app.custom_fields.values.rules import remember, rules_of

MAX_SIZE = 32 * 1024  # bytes of JSON


def patch(
    entity: Entity[R], row_id: UUID | str, patches: Mapping[str, object], *, actor: Actor
) -> R:
    """Merge ``patches`` into a row's metadata (RFC 7396). A patch without effect records nothing.

    The row stays locked, so concurrent patches of one row run one after the other and none is
    lost. The merge runs in Python, because the result has to satisfy the tenant's custom fields.

    Raises NotFound; Invalid if a value does not satisfy the custom field of its key, and if the
    result is larger than :data:`MAX_SIZE`.
    """
    row, (rules,) = queries.lock_with(entity.model, row_id, entity.rules)
    tenant_id = entity.tenant_of(row)
    remember(tenant_id, entity.entity_type, rules)
    before: dict[str, object] = row.meta_data
    after = merge_patch(before, patches)
    check(entity, tenant_id, patches, after, loc=("body", "patches"))
    queries.check_precondition(row)
    row, change = queries.update_row(entity.model, row, {"meta_data": after}, actor_id=actor.id)
    if change is not None:
        writer.refresh(tenant_id, entity.entity_type, [(row.id, before, after)])
        action = f"{entity.entity_type}.meta_data_patched"
        record(action, row, change, actor=actor, hidden=entity.derived)
    return row


def merge_patch(target: Any, patch: Any) -> Any:
    """``target`` with ``patch`` applied (RFC 7396, section 2); neither argument changes.

    Null removes a key, objects merge, anything else (arrays too) replaces. New keys come last, in
    the patch's order. The recursion is as deep as the patch.
    """
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def check(
    entity: Entity[Any],
    tenant_id: UUID,
    patches: Mapping[str, object],
    after: Mapping[str, object],
    *,
    loc: Location,
) -> None:
    """Raise Invalid at ``loc`` if custom fields are not satisfied or ``after`` is too large."""
    if patches:
        values.check(rules_of(tenant_id, entity.entity_type), patches, loc, is_patch=True)
    check_size(after, patches, loc=loc)


def check_all(
    entity: Entity[Any], tenant_id: UUID, before: Mapping[str, object], after: Mapping[str, object]
) -> None:
    """Raise Invalid at ``meta_data`` where ``after`` cannot replace all metadata of a row."""
    removed = dict.fromkeys(name for name in before if name not in after)
    check(entity, tenant_id, {**removed, **after}, after, loc=("body", "meta_data"))


def check_size(after: Mapping[str, object], given: Mapping[str, object], *, loc: Location) -> None:
    """Raise Invalid at ``loc``, where ``given`` was, if ``after`` is too large."""
    size = json_text.size(after)
    if size > MAX_SIZE:
        reason = f"meta_data can have at most {MAX_SIZE} bytes of JSON, not {size}"
        raise Invalid(value_error(loc, reason, given))

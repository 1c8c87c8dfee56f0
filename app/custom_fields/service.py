"""What happens to custom field definitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Select, func, select

from app.audit.service import record, record_creation
from app.core.actors import Actor
from app.core.db import queries
from app.core.db.pages import Page, paginate
from app.core.db.queries import check_precondition
from app.core.db.tenancy import narrow
from app.core.errors import Conflict, Entry, Invalid, value_error
from app.core.validation.messages import MAX_ENTRIES
from app.custom_fields.models import CustomField, FieldType
from app.custom_fields.search_index import indexing
from app.custom_fields.values.options import clean_options
from app.extensions import db
from app.tenants.models import Tenant

MAX_FIELDS = 256
MAX_SEARCHABLE = 20


def get_field(field_id: UUID | str) -> CustomField:
    """The field, archived or not."""
    return queries.get_row(CustomField, field_id)


def list_fields(
    *,
    tenant_id: UUID | None,
    limit: int,
    cursor: str | None = None,
    filters: Mapping[str, Any] | None = None,
) -> Page:
    """One page of a tenant's fields (a platform scope without ``tenant_id``: everybody's)."""
    return paginate(
        CustomField, equal=filters, tenant_id=narrow(tenant_id), limit=limit, cursor=cursor
    )


def active_fields(tenant_id: UUID, entity_type: str) -> Sequence[CustomField]:
    """The fields in use, in the order of a form."""
    found = _ordered(tenant_id, entity_type).where(CustomField.is_active)
    return db.session.execute(found).scalars().all()


def create(tenant: Tenant, values: Mapping[str, Any], *, actor: Actor) -> CustomField:
    """A new, active field; where it is searchable, the build of its index is queued.

    Raises Invalid for options that do not fit, Conflict ``field_key_taken`` (also by an archived
    field), ``custom_field_limit`` and ``searchable_field_limit``.
    """
    field_type = FieldType(values["field_type"])
    field = CustomField(
        **{
            **values,
            "field_type": field_type.value,
            "options": clean_options(field_type, values.get("options")),
            "tenant_id": tenant.id,
            "idp_org_id": tenant.idp_org_id,
        }
    )
    indexing.lock_rules(tenant.id, values["entity_type"])
    db.session.add(field)
    queries.flush(_conflicts())
    _check_limits(field)
    if field.is_indexed:
        indexing.rebuild(field)
    record_creation("custom_field.created", field, actor=actor)
    return field


def update(field_id: UUID | str, values: Mapping[str, Any], *, actor: Actor) -> CustomField:
    """Change label, options, is_required, is_searchable or sort_order.

    Values that are stored stay as they are, whatever the new rules say.
    """
    field, _ = queries.lock_with(CustomField, field_id)
    if "options" in values:
        options = clean_options(FieldType(field.field_type), values["options"])
        values = {**values, "options": options}
    check_precondition(field)
    return _change(field, values, "custom_field.updated", actor)


def archive(field_id: UUID | str, *, actor: Actor) -> CustomField:
    """Take a field out of use; its values stay, its index rows are removed in the background."""
    field = queries.lock_row(CustomField, field_id)
    return _change(field, {"is_active": False}, "custom_field.archived", actor)


def restore(field_id: UUID | str, *, actor: Actor) -> CustomField:
    """Take an archived field back into use; where it is searchable, queue its index's build."""
    field = queries.lock_row(CustomField, field_id)
    return _change(field, {"is_active": True}, "custom_field.restored", actor)


def reorder(
    tenant_id: UUID, entity_type: str, field_ids: Sequence[UUID], *, actor: Actor
) -> list[CustomField]:
    """Number the fields' sort_order anew: the named ones first, then the others as they were.

    Returns all of them in that order; Invalid at ``["body", "field_ids", index]`` for an id that
    is none of them or is there twice.
    """
    locked = _ordered(tenant_id, entity_type).with_for_update()
    known = {field.id: field for field in db.session.execute(locked).scalars()}
    remaining = dict(known)
    strange = [
        (index, field_id)
        for index, field_id in enumerate(field_ids)
        if remaining.pop(field_id, None) is None
    ]
    if strange:
        raise Invalid(*(_unknown(*where) for where in strange[:MAX_ENTRIES]))
    ordered = [*(known[field_id] for field_id in field_ids), *remaining.values()]
    for place, field in enumerate(ordered):
        _change(field, {"sort_order": place}, "custom_field.reordered", actor)
    return ordered


def _ordered(tenant_id: UUID, entity_type: str) -> Select[tuple[CustomField]]:
    return (
        select(CustomField)
        .where(CustomField.tenant_id == tenant_id, CustomField.entity_type == entity_type)
        .order_by(CustomField.sort_order, CustomField.created_at, CustomField.id)
    )


def _unknown(index: int, field_id: UUID) -> Entry:
    reason = "this is no field of the entity type, or it is named twice"
    return value_error(("body", "field_ids", index), reason, str(field_id))


def _change(
    field: CustomField, values: Mapping[str, Any], action: str, actor: Actor
) -> CustomField:
    was_indexed = field.is_indexed
    change = field.assign(values)
    if change is None:
        return field
    if field.is_indexed != was_indexed:
        indexing.rebuild(field)
    if change.after.get("is_searchable"):
        indexing.lock_rules(field.tenant_id, field.entity_type)
        _check_limits(field)
    record(action, field, change, actor=actor)
    return field


def _check_limits(field: CustomField) -> None:
    """Conflict where ``field``, already written, is one too many; needs the rules' lock.

    Archived fields count, since each can be restored.
    """
    counted = select(func.count(), func.count().filter(CustomField.is_searchable)).where(
        CustomField.tenant_id == field.tenant_id, CustomField.entity_type == field.entity_type
    )
    fields, searchable = db.session.execute(counted).one()
    if fields > MAX_FIELDS:
        raise Conflict(
            f"A tenant has at most {MAX_FIELDS} custom fields per entity type.",
            code="custom_field_limit",
        )
    if field.is_searchable and searchable > MAX_SEARCHABLE:
        raise Conflict(
            f"A tenant has at most {MAX_SEARCHABLE} searchable custom fields per entity type.",
            code="searchable_field_limit",
        )


def _conflicts() -> dict[str, Conflict]:
    return {
        "uq_custom_fields_tenant_id_entity_type_field_key": Conflict(
            "This field_key is taken.", code="field_key_taken"
        )
    }

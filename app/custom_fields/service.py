"""Custom field definitions: list, create, change, archive, reorder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from uuid import UUID

from sqlalchemy import and_, bindparam, select

from app.audit.service import record, record_creation
from app.core import json_text
from app.core.actors import Actor
from app.core.db import queries
from app.core.db.bulk import update_rows
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import check_precondition
from app.core.db.statements import Statement
from app.core.db.writes import insert_row, writes
from app.core.errors import Conflict, Invalid, NotFound, value_error
from app.core.json_text import Json
from app.core.validation.messages import MAX_ENTRIES
from app.custom_fields.models import CustomField, FieldIndex, FieldType
from app.custom_fields.search_index.builder import delete_rows
from app.custom_fields.search_index.index_state import is_indexed, lock_index, lock_rules, rebuild
from app.custom_fields.values.check import clean_options
from app.tenants.models import Tenant

MAX_FIELDS = 256
MAX_SEARCHABLE = 20
MAX_EMAIL_FIELDS = 16  # the check of one international address takes a millisecond
MAX_OPTIONS_BYTES = 32 * 1024
MAX_ALL_OPTIONS_BYTES = 2 * 1024 * 1024
DELETED_BATCHES = 4  # of index rows in one request
DELETED_FIELDS = ("entity_type", "field_key", "label", "field_type", "options")

_order = (CustomField.sort_order, CustomField.created_at, CustomField.id)
_place = attrgetter(*(column.key for column in _order))
LIST_ACTIVE = Statement(
    "custom_fields.list_active",
    select(Tenant.id, CustomField)
    .outerjoin_from(
        Tenant,
        CustomField,
        and_(
            CustomField.tenant_id == Tenant.id,
            CustomField.entity_type == bindparam("entity_type"),
            CustomField.is_active,
        ),
    )
    .where(Tenant.id == bindparam("tenant_id"))
    .order_by(*_order),
)
LOCK_ALL = Statement(
    "custom_fields.lock_all",
    select(CustomField)
    .where(
        CustomField.tenant_id == bindparam("tenant_id"),
        CustomField.entity_type == bindparam("entity_type"),
    )
    .order_by(CustomField.id)  # the same order in each request, so there is no deadlock
    .with_for_update(),
)
COUNT = Statement(
    "custom_fields.count",
    "SELECT count(*) AS fields, count(*) FILTER (WHERE is_searchable) AS searchable,"
    " count(*) FILTER (WHERE field_type = 'email') AS emails,"
    " coalesce(sum(octet_length(options::text)), 0) AS size"
    " FROM custom_fields WHERE tenant_id = :tenant_id AND entity_type = :entity_type",
)


class FieldKeyTaken(Conflict):
    code = "field_key_taken"
    detail = "This field_key is taken, perhaps by an archived field; restore that one, or choose another key."


class OptionsTooLarge(Conflict):
    code = "options_limit"
    detail = (
        "The options of a custom field can have at most"
        f" {MAX_OPTIONS_BYTES // 1024} KiB ({MAX_OPTIONS_BYTES} bytes) of JSON,"
        f" those of all custom fields of an entity type {MAX_ALL_OPTIONS_BYTES // 1024**2} MiB."
    )


class TooManyFields(Conflict):
    code = "custom_field_limit"
    detail = f"A tenant has at most {MAX_FIELDS} custom fields per entity type."


class TooManySearchableFields(Conflict):
    code = "searchable_field_limit"
    detail = f"A tenant has at most {MAX_SEARCHABLE} searchable custom fields per entity type."


class TooManyEmailFields(Conflict):
    code = "email_field_limit"
    detail = f"A tenant has at most {MAX_EMAIL_FIELDS} custom fields of type email per entity type."


LIMITS = (OptionsTooLarge, TooManyFields, TooManySearchableFields, TooManyEmailFields)


class CustomFieldActive(Conflict):
    code = "custom_field_active"
    detail = "This custom field is active; archive it first."


class IndexRowsLeft(Conflict):
    code = "index_rows_left"
    detail = "The index of this field is still being deleted; try again in a moment."


CONFLICTS = {"uq_custom_fields_tenant_id_entity_type_field_key": FieldKeyTaken}


def get_field(field_id: UUID | str) -> CustomField:
    return queries.get_row(CustomField, field_id)


def list_fields(
    paging: Paging = FIRST_PAGE,
    *,
    tenant_id: UUID | None = None,
    filters: Mapping[str, object] | None = None,
) -> Page:
    """One page of a tenant's fields (of all tenants, in a platform scope without ``tenant_id``)."""
    return paginate(CustomField, paging, equal=filters, tenant_id=tenant_id)


def active_fields(tenant_id: UUID, entity_type: str) -> Sequence[CustomField]:
    """The fields in use, in the order of a form; raises NotFound for an unknown tenant."""
    found = LIST_ACTIVE.all(tenant_id=tenant_id, entity_type=entity_type)
    if not found:
        raise NotFound.of("tenant")
    return [field for _, field in found if field.id is not None]  # else the outer join found none


def create(tenant_id: UUID, values: Mapping[str, Json], *, actor: Actor) -> CustomField:
    """Create an active field; where it is searchable, the build of its index is queued.

    Raises NotFound for an unknown tenant, Invalid for options that do not fit, FieldKeyTaken (also
    by an archived field), and the errors :data:`LIMITS`.
    """
    field_type = FieldType(values["field_type"])
    options = clean_options(field_type, values.get("options"))
    tenant = queries.get_row(Tenant, tenant_id)
    _check_size(options)
    lock_rules(tenant.id, values["entity_type"])
    field = insert_row(
        CustomField,
        {
            **values,
            "field_type": field_type.value,
            "options": options,
            "tenant_id": tenant.id,
            "idp_org_id": tenant.idp_org_id,
        },
        conflicts=CONFLICTS,
    )
    _check_limits(field, has_more_options=options is not None)
    if is_indexed(field):
        rebuild(field)
    record_creation("custom_field.created", field, actor=actor)
    return field


def update(field_id: UUID | str, values: Mapping[str, Json], *, actor: Actor) -> CustomField:
    """Change label, options, is_required, is_searchable or sort_order.

    Stored values are not checked against the new rules. Raises OptionsTooLarge, but not for options
    that stay the same.
    """
    field, _ = queries.lock_with(CustomField, field_id)
    if "options" in values:
        options = clean_options(FieldType(field.field_type), values["options"])
        values = {**values, "options": options}
    check_precondition(field)
    if values.get("options") not in (None, field.options):
        _check_size(values["options"])
    return _change(field, values, "custom_field.updated", actor)


def archive(field_id: UUID | str, *, actor: Actor) -> CustomField:
    """Archive a field: its values remain, its index rows are deleted in the background."""
    field = queries.lock_row(CustomField, field_id)
    return _change(field, {"is_active": False}, "custom_field.archived", actor)


def restore(field_id: UUID | str, *, actor: Actor) -> CustomField:
    """Restore an archived field; where it is searchable, the build of its index is queued."""
    field = queries.lock_row(CustomField, field_id)
    return _change(field, {"is_active": True}, "custom_field.restored", actor)


def delete(field_id: UUID | str, *, actor: Actor) -> None:
    """Delete an archived field with its index; the stored values remain in the entities.

    Raises CustomFieldActive, and IndexRowsLeft while the job of the archiving still has much to do.
    """
    field = queries.lock_row(CustomField, field_id)
    if field.is_active:
        raise CustomFieldActive
    if lock_index(field.tenant_id, field.id) is not None:
        if not any(delete_rows(field.tenant_id, field.id) for _ in range(DELETED_BATCHES)):
            raise IndexRowsLeft
        queries.delete_where(FieldIndex, tenant_id=field.tenant_id, field_id=field.id)
    before = {name: getattr(field, name) for name in DELETED_FIELDS}
    record("custom_field.deleted", field, queries.Change(before, {}), actor=actor)
    queries.delete_row(CustomField, field)


def reorder(
    tenant_id: UUID, entity_type: str, field_ids: Sequence[UUID], *, actor: Actor
) -> list[CustomField]:
    """Set sort_order of all fields: the named ones first, then the others in their old order.

    Returns them in the new order. Raises Invalid at ``["body", "field_ids", index]`` for an id
    that is none of them or is named twice, and NotFound for an unknown tenant.
    """
    queries.get_row(Tenant, tenant_id)
    locked = LOCK_ALL.all(tenant_id=tenant_id, entity_type=entity_type)
    # PostgreSQL would sort before it waits for the locks, by values that may be old then.
    known = {field.id: field for field in sorted(locked, key=_place)}
    remaining = dict(known)
    reason = "this is no field of the entity type, or it is named twice"
    strange = [
        value_error(("body", "field_ids", index), reason, str(field_id))
        for index, field_id in enumerate(field_ids)
        if remaining.pop(field_id, None) is None
    ]
    if strange:
        raise Invalid(*strange[:MAX_ENTRIES])
    ordered = [*(known[field_id] for field_id in field_ids), *remaining.values()]
    places = [(field, {"sort_order": place}) for place, field in enumerate(ordered)]
    changes = update_rows(CustomField, places)
    with writes() as w:
        for field, change in changes:
            record("custom_field.reordered", field, change, actor=actor, into=w)
    return [field for field, _ in changes]


def _change(
    field: CustomField, values: Mapping[str, object], action: str, actor: Actor
) -> CustomField:
    was_indexed = is_indexed(field)
    field, change = queries.update_row(CustomField, field, values)
    if change is None:
        return field
    if is_indexed(field) != was_indexed:
        rebuild(field)
    has_more_options = _options_size(change.after) > _options_size(change.before)
    if change.after.get("is_searchable") or has_more_options:
        lock_rules(field.tenant_id, field.entity_type)
        _check_limits(field, has_more_options=has_more_options)
    record(action, field, change, actor=actor)
    return field


def _check_size(options: Sequence[str] | None) -> None:
    """Raise OptionsTooLarge, because each write of an entity's values reads all options."""
    if json_text.size(options) > MAX_OPTIONS_BYTES:
        raise OptionsTooLarge


def _options_size(values: Mapping[str, object]) -> int:
    return json_text.size(values.get("options"))


def _check_limits(field: CustomField, *, has_more_options: bool) -> None:
    """Raise the error of a limit that ``field``, which is already written, goes beyond.

    The caller holds the lock of the rules. Archived fields count, since each can be restored.
    """
    found = COUNT.one(tenant_id=field.tenant_id, entity_type=field.entity_type)
    fields, searchable, emails, size = found
    if fields > MAX_FIELDS:
        raise TooManyFields
    if field.field_type == FieldType.EMAIL and emails > MAX_EMAIL_FIELDS:
        raise TooManyEmailFields
    if has_more_options and size > MAX_ALL_OPTIONS_BYTES:
        raise OptionsTooLarge
    if field.is_searchable and searchable > MAX_SEARCHABLE:
        raise TooManySearchableFields

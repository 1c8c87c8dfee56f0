"""The state of search indexes: reading and locking it, and starting a rebuild."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from app.core.clock import utcnow
from app.core.db.queries import find_locked, parse_id, update_where
from app.core.db.statements import Statement
from app.core.db.tenancy import current_scope
from app.core.db.writes import insert_row, with_defaults
from app.core.errors import NotFound
from app.core.jobs.queues import JOBS
from app.custom_fields.models import CustomField, FieldIndex, IndexState

BUILD_JOB = "app.custom_fields.jobs.sync_search_index"

FIND = Statement(
    "custom_field_indexes.find",
    "SELECT f.id AS field_id, coalesce(i.state, 'none') AS state,"
    " coalesce(i.is_settled, true) AS is_settled, coalesce(i.done, 0) AS done,"
    " coalesce(i.total, 0) AS total, i.error, i.built_version FROM custom_fields f"
    " LEFT JOIN custom_field_indexes i ON i.tenant_id = f.tenant_id AND i.field_id = f.id"
    " WHERE f.id = ANY (CAST(:field_ids AS uuid[]))"
    " AND f.tenant_id = coalesce(CAST(:tenant_id AS uuid), f.tenant_id)",
)

LOCK_RULES = Statement(
    "custom_fields.lock_rules",
    "SELECT lock_custom_fields(:tenant_id, :entity_type)",
)


def is_indexed(field: CustomField) -> bool:
    """Whether writers maintain index rows of the field."""
    return field.is_searchable and field.is_active


def get_index(field_id: UUID | str) -> FieldIndex:
    """The state of a field's index, ``none`` if it never had an index; raises NotFound."""
    found = get_indexes([parse_id(field_id, CustomField)])
    if not found:
        raise NotFound.of(CustomField)
    return found[0]


def get_indexes(field_ids: Sequence[UUID]) -> Sequence[FieldIndex]:
    """The states of the fields' indexes, in any order."""
    return FIND.all(field_ids=list(field_ids), tenant_id=current_scope().tenant_id)


def lock_index(tenant_id: UUID, field_id: UUID) -> FieldIndex | None:
    """The state, locked until the transaction ends; None where the field never had an index."""
    return find_locked(FieldIndex, tenant_id=tenant_id, field_id=field_id)


def save_index(index: FieldIndex, changes: Mapping[str, object]) -> FieldIndex:
    """Store changes of a locked state; returns the new state."""
    changes = {**changes, "updated_at": utcnow()}
    update_where(FieldIndex, {"tenant_id": index.tenant_id, "field_id": index.field_id}, changes)
    return index._replace(**changes)


def lock_rules(tenant_id: UUID, entity_type: str) -> None:
    """Stop all other writes to entities and fields of that type until the transaction ends.

    Lock the field's index first, because a build holds that lock while it waits for writers.
    """
    LOCK_RULES.execute(tenant_id=tenant_id, entity_type=entity_type)


def rebuild(field: CustomField) -> None:
    """Queue the work on a field's index: build it, or delete its rows if it is not indexed.

    The caller changes ``is_searchable`` or ``is_active`` in the same transaction. After its commit
    every writer maintains the rows of the entities that the build has passed.
    """
    state = IndexState.BUILDING if is_indexed(field) else IndexState.NONE
    key = {"tenant_id": field.tenant_id, "field_id": field.id}
    new = {**key, "state": state.value, "is_settled": False}
    if update_where(FieldIndex, key, with_defaults(FieldIndex.__table__, new)) == 0:
        insert_row(FieldIndex, new)
    lock_rules(field.tenant_id, field.entity_type)
    JOBS[BUILD_JOB].push(str(field.tenant_id), str(field.id))

"""The state of search indexes: what is to be built or removed, and who tells the worker."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import bindparam, func, select

from app.core.clock import utcnow
from app.core.jobs.queues import JOBS
from app.custom_fields.models import CustomField, FieldIndex, IndexState
from app.extensions import db

JOB = "app.custom_fields.jobs.sync_search_index"

LOCK = select(func.lock_custom_fields(bindparam("tenant_id"), bindparam("entity_type")))
FIND = select(FieldIndex).where(
    FieldIndex.tenant_id == bindparam("tenant_id"), FieldIndex.field_id == bindparam("field_id")
)
FIND_LOCKED = FIND.with_for_update().execution_options(populate_existing=True)


def get_index(field: CustomField) -> FieldIndex:
    """The state of a field's index; an unsaved one in state ``none`` where it never had one."""
    place = {"tenant_id": field.tenant_id, "field_id": field.id}
    found: FieldIndex | None = db.session.execute(FIND, place).scalar()
    return found or _new(field)


def lock_index(tenant_id: UUID, field_id: UUID) -> FieldIndex | None:
    """The state, locked until the transaction ends; None where the field never had an index."""
    place = {"tenant_id": tenant_id, "field_id": field_id}
    found: FieldIndex | None = db.session.execute(FIND_LOCKED, place).scalar()
    return found


def lock_rules(tenant_id: UUID, entity_type: str) -> None:
    """Keep everybody else from writing entities, or changing fields, of that type until the end.

    Lock the field's index first: a build holds that while it waits for writers.
    """
    db.session.execute(LOCK, {"tenant_id": tenant_id, "entity_type": entity_type})


def rebuild(field: CustomField) -> None:
    """Have the rows of ``field`` built from the beginning, or removed where it is not indexed.

    The caller changes ``is_searchable`` or ``is_active`` in the same transaction, so that every
    writer from then on keeps the rows of what the build has passed.
    """
    index = lock_index(field.tenant_id, field.id)
    lock_rules(field.tenant_id, field.entity_type)
    if index is None:
        index = _new(field)
        db.session.add(index)
    index.state = IndexState.BUILDING if field.is_indexed else IndexState.NONE
    index.is_settled = False
    index.position = index.error = index.built_version = None
    index.done = index.total = 0
    index.updated_at = utcnow()
    JOBS[JOB].push(str(field.tenant_id), str(field.id))


def _new(field: CustomField) -> FieldIndex:
    return FieldIndex(
        tenant_id=field.tenant_id,
        field_id=field.id,
        state=IndexState.NONE,
        is_settled=True,
        done=0,
        total=0,
    )

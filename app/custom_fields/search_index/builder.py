"""Building and deleting search indexes, in batches.

Each batch is a transaction of its own that also stores the position it has reached. A killed build
continues there, and two builders of an index take turns. A batch locks its entities, so a write to
one of them comes before or after the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, select

from app.core.db import tenancy
from app.core.db.queries import count_where
from app.core.db.statements import Statement
from app.core.jobs import slices
from app.custom_fields.entities import ENTITIES
from app.custom_fields.models import CustomField, FieldIndex, FieldType, IndexState
from app.custom_fields.search_index import writer
from app.custom_fields.search_index.entries import entries_of
from app.custom_fields.search_index.index_state import lock_index, save_index

BATCH = 500  # entities
DELETED_AT_ONCE = 5000  # index rows
BEFORE_ALL = UUID(int=0)  # less than every id

LOCK_FIELD_KEY = Statement(
    "custom_fields.lock_key",
    select(CustomField)
    .where(CustomField.tenant_id == bindparam("tenant_id"), CustomField.id == bindparam("field_id"))
    .with_for_update(read=True, key_share=True),
)
DELETE_NEXT = Statement(
    "custom_field_index_rows.delete_next",
    "DELETE FROM custom_field_index_rows WHERE (tenant_id, field_id, entity_id, ordinal) IN ("
    "SELECT tenant_id, field_id, entity_id, ordinal FROM custom_field_index_rows"
    " WHERE tenant_id = :tenant_id AND field_id = :field_id LIMIT :number)",
    prepare=False,
)
DELETE_OF_ENTITIES = Statement(
    "custom_field_index_rows.delete_of_entities",
    "DELETE FROM custom_field_index_rows WHERE tenant_id = :tenant_id AND field_id = :field_id"
    " AND entity_id = ANY (CAST(:entity_ids AS uuid[]))",
)
# A batch reads the index in its order. While PostgreSQL has no statistics of a new tenant, it may
# expect few rows, and read and sort the whole tenant for each batch.
DISABLE_SORT = Statement("settings.disable_sort", "SET LOCAL enable_sort = off", prepare=False)


def work(tenant_id: UUID, field_id: UUID) -> Iterator[FieldIndex]:
    """Build or delete, as the index's state says, batch by batch until no work is left.

    It yields the state after each batch; nothing for a field that was deleted meanwhile. After an
    error of the database the work can be resumed; any other makes the index ``failed``.
    """
    run_batch, fail = (partial(each, tenant_id, field_id) for each in (_run_batch, _fail))
    return slices.run(run_batch, lambda index: index.is_settled, fail)


def delete_rows(tenant_id: UUID, field_id: UUID) -> bool:
    """Delete the next :data:`DELETED_AT_ONCE` index rows of a field; whether no more are left."""
    deleted = DELETE_NEXT.execute(tenant_id=tenant_id, field_id=field_id, number=DELETED_AT_ONCE)
    return deleted < DELETED_AT_ONCE


@cache
def next_batch(entity_type: str) -> Statement:
    """The statement that reads and locks the entities of one batch."""
    entity = ENTITIES[entity_type]
    table, tenant_id = entity.model.__tablename__, entity.tenant_id.key
    return Statement(
        f"{table}.lock_next",
        f"SELECT id, meta_data -> :field_key AS value FROM {table}"  # noqa: S608
        f" WHERE {tenant_id} = :tenant_id AND id > :position"
        " ORDER BY id LIMIT :limit FOR NO KEY UPDATE",
        prepare=False,
    )


def _run_batch(tenant_id: UUID, field_id: UUID) -> FieldIndex | None:
    """One batch. The field is locked before its index, as a change of the field does."""
    tenancy.enter(tenancy.Scope(tenant_id))
    field = LOCK_FIELD_KEY.first(tenant_id=tenant_id, field_id=field_id)
    index = lock_index(tenant_id, field_id)
    if field is None or index is None:
        return None
    if index.is_settled:
        return index
    if index.state == IndexState.BUILDING:
        return save_index(index, _build(field, index))
    return save_index(index, {"is_settled": delete_rows(tenant_id, field_id)})


def _build(field: CustomField, index: FieldIndex) -> dict[str, object]:
    """Index the next entities; what changes about the state of the index."""
    values = _next_values(field, index.position or BEFORE_ALL)
    if values:
        _replace(field, values)
    done = index.done + len(values)
    if len(values) < BATCH:
        return {
            "state": IndexState.READY.value,
            "is_settled": True,
            "done": done,
            "total": done,
            "built_version": field.version,
        }
    total = index.total
    if index.position is None:
        entity = ENTITIES[field.entity_type]
        total = count_where(entity.model, **{entity.tenant_id.key: field.tenant_id})
    return {"position": values[-1][0], "done": done, "total": total}


def _replace(field: CustomField, values: Sequence[tuple[UUID, Any]]) -> None:
    """Write the index rows of these entities, which are locked, anew from their values."""
    DELETE_OF_ENTITIES.execute(
        tenant_id=field.tenant_id, field_id=field.id, entity_ids=[id_ for id_, _ in values]
    )
    field_type = FieldType(field.field_type)
    rows = [
        row
        for entity_id, value in values
        for row in writer.rows_of(
            field.tenant_id, field.id, entity_id, entries_of(field_type, value)
        )
    ]
    writer.write(rows)


def _next_values(field: CustomField, position: UUID) -> list[tuple[UUID, Any]]:
    """The next entities, locked, each with its value under the field's key."""
    if field.entity_type not in ENTITIES:
        return []
    DISABLE_SORT.execute()
    found: list[tuple[UUID, Any]] = next_batch(field.entity_type).all(
        tenant_id=field.tenant_id, field_key=field.field_key, position=position, limit=BATCH
    )
    return found


def _fail(tenant_id: UUID, field_id: UUID, error: str) -> None:
    tenancy.enter(tenancy.Scope(tenant_id))
    index = lock_index(tenant_id, field_id)
    if index is not None and not index.is_settled:
        save_index(index, {"state": IndexState.FAILED.value, "error": error, "is_settled": True})

"""Building and removing a search index, batch by batch.

Each batch is a transaction of its own that also moves the recorded position, so a build that is
killed goes on where it was, and two builders of one index take turns. A batch locks its entities
for the moment it takes: whoever writes one of them comes before or after it, never between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, delete, func, select, text
from sqlalchemy.exc import DBAPIError

from app.core.clock import utcnow
from app.core.db import tenancy, transactions
from app.custom_fields.models import CustomField, FieldIndex, FieldType, IndexRow, IndexState
from app.custom_fields.search_index import writer as index_rows
from app.custom_fields.search_index.entries import entries_of
from app.custom_fields.search_index.indexing import lock_index
from app.extensions import db
from app.users.models import User

BATCH = 500
REMOVED_AT_ONCE = 5000

# Or the planner, where it takes a new tenant for a small one, reads and sorts all of it each time.
IN_ORDER_OF_THE_KEY = text("SET LOCAL enable_sort = off")

# Where the values of each kind of entity are; of other kinds there are none here.
SOURCES = {"user": (User, User.meta_data)}

FIELD = (
    select(CustomField)
    .where(CustomField.tenant_id == bindparam("tenant_id"), CustomField.id == bindparam("field_id"))
    .execution_options(populate_existing=True)
)
FIELD_HELD = FIELD.with_for_update(read=True, key_share=True)
_rows_of_field = (
    IndexRow.tenant_id == bindparam("tenant_id"),
    IndexRow.field_id == bindparam("field_id"),
)
FIND_LAST_OF_SOME = (
    select(IndexRow.entity_id)
    .where(*_rows_of_field)
    .order_by(IndexRow.entity_id, IndexRow.ordinal)
    .offset(bindparam("number"))
    .limit(1)
)
REMOVE_UP_TO = delete(IndexRow).where(
    *_rows_of_field, IndexRow.entity_id <= bindparam("last_entity_id")
)
REMOVE_ALL = delete(IndexRow).where(*_rows_of_field)
REMOVE_OF_ENTITIES = delete(IndexRow).where(
    *_rows_of_field, IndexRow.entity_id.in_(bindparam("entity_ids", expanding=True))
)


@dataclass(frozen=True)
class Progress:
    """Where the work on one index stands after a batch."""

    state: IndexState
    done: int
    total: int
    is_settled: bool


def work(tenant_id: UUID, field_id: UUID) -> Iterator[Progress]:
    """Build or remove, whichever is wanted, batch by batch until nothing is left to do.

    An error of the database leaves the work to be resumed; any other makes the index ``failed``.
    """
    while True:
        try:
            progress = transactions.run(partial(_step, tenant_id, field_id))
        except DBAPIError:
            raise
        except Exception as fault:
            transactions.run(partial(_fail, tenant_id, field_id, type(fault).__name__))
            raise
        yield progress
        if progress.is_settled:
            return


def replace(field: CustomField, values: Sequence[tuple[UUID, Any]]) -> None:
    """Make the index rows of these entities, which are locked, what their values say."""
    place = {"tenant_id": field.tenant_id, "field_id": field.id}
    db.session.execute(REMOVE_OF_ENTITIES, {**place, "entity_ids": [id_ for id_, _ in values]})
    field_type = FieldType(field.field_type)
    rows = [
        row
        for entity_id, value in values
        for row in index_rows.rows_of(field.id, entity_id, entries_of(field_type, value))
    ]
    if rows:
        index_rows.write(field.tenant_id, rows)


def reread(field: CustomField) -> CustomField:
    """The field as it is in this transaction, whenever it was loaded."""
    place = {"tenant_id": field.tenant_id, "field_id": field.id}
    found: CustomField = db.session.execute(FIELD, place).scalar_one()
    return found


def _step(tenant_id: UUID, field_id: UUID) -> Progress:
    """One batch. The field is locked before its index, as whoever changes the field does."""
    tenancy.enter(tenancy.Scope(tenant_id))
    place = {"tenant_id": tenant_id, "field_id": field_id}
    field = db.session.execute(FIELD_HELD, place).scalar()
    index = lock_index(tenant_id, field_id)
    if field is None or index is None:
        return Progress(IndexState.NONE, 0, 0, is_settled=True)
    if not index.is_settled:
        index.updated_at = utcnow()
        if index.state == IndexState.BUILDING:
            _build_batch(field, index)
        else:
            _remove_batch(index)
    return Progress(IndexState(index.state), index.done, index.total, index.is_settled)


def _build_batch(field: CustomField, index: FieldIndex) -> None:
    if index.position is None:
        index.total = _count(field)
    values = _next_values(field, index.position)
    if values:
        replace(field, values)
        index.position = values[-1][0]
        index.done += len(values)
    if len(values) < BATCH:
        index.state = IndexState.READY
        index.total = index.done
        index.built_version = field.version
        index.is_settled = True


def _remove_batch(index: FieldIndex) -> None:
    place = {"tenant_id": index.tenant_id, "field_id": index.field_id}
    number = {"number": REMOVED_AT_ONCE - 1}
    last = db.session.execute(FIND_LAST_OF_SOME, {**place, **number}).scalar()
    index.is_settled = last is None
    if last is None:
        db.session.execute(REMOVE_ALL, place)
    else:
        db.session.execute(REMOVE_UP_TO, {**place, "last_entity_id": last})


def _count(field: CustomField) -> int:
    if field.entity_type not in SOURCES:
        return 0
    model, _ = SOURCES[field.entity_type]
    counted = select(func.count()).where(model.tenant_id == field.tenant_id)
    return db.session.execute(counted).scalar_one()


def _next_values(field: CustomField, position: UUID | None) -> list[tuple[UUID, Any]]:
    """The next entities, locked, each with its value under the field's key."""
    if field.entity_type not in SOURCES:
        return []
    model, document = SOURCES[field.entity_type]
    statement = select(model.id, document[field.field_key]).where(
        model.tenant_id == field.tenant_id
    )
    if position is not None:
        statement = statement.where(model.id > position)
    db.session.execute(IN_ORDER_OF_THE_KEY)
    statement = statement.order_by(model.id).limit(BATCH).with_for_update(key_share=True)
    return [(id_, value) for id_, value in db.session.execute(statement)]


def _fail(tenant_id: UUID, field_id: UUID, error: str) -> None:
    tenancy.enter(tenancy.Scope(tenant_id))
    index = lock_index(tenant_id, field_id)
    if index is not None and not index.is_settled:
        index.state = IndexState.FAILED
        index.error = f"The build ended with an unexpected error ({error})."
        index.is_settled = True

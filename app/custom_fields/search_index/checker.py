"""Comparing a search index with the data, row for row, and mending it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, ColumnElement, Uuid, any_, delete, except_, func, select, true

from app.core.db import tenancy, transactions
from app.custom_fields.models import CustomField, FieldType, IndexRow, IndexState
from app.custom_fields.search_index import builder
from app.custom_fields.search_index.entries import Entry, entries_of
from app.custom_fields.search_index.indexing import lock_index, lock_rules
from app.extensions import db

BATCH = 1000


@dataclass
class Findings:
    """What a check has seen so far; ``wrong`` counts entities whose rows are not what they should be."""

    entities: int = 0
    wrong: int = 0
    repaired: int = 0


def check(field: CustomField, *, repair: bool) -> Iterator[Findings]:
    """Compare batch by batch, and at last look for rows of no entity; yields after each.

    Each batch is one statement, so it sees each entity and its rows at the same moment, whoever
    writes meanwhile. A field that is not indexed should have no rows at all.
    """
    field = transactions.run(partial(_current, field))
    found = Findings()
    position = None
    while field.is_indexed and field.entity_type in builder.SOURCES:
        batch = transactions.run(partial(_compare, field, position))
        if not batch:
            break
        position = batch[-1][0]
        wrong = [entity_id for entity_id, is_right in batch if not is_right]
        found.entities += len(batch)
        found.wrong += len(wrong)
        if repair and wrong:
            found.repaired += transactions.run(partial(_repair, field, wrong))
        yield found
    found.wrong += transactions.run(partial(_count_strays, field))
    if repair and found.wrong > found.repaired:
        found.repaired += transactions.run(partial(_remove_strays, field))
    yield found


def _current(field: CustomField) -> CustomField:
    tenancy.enter(tenancy.Scope(field.tenant_id))
    return builder.reread(field)


def _compare(field: CustomField, position: UUID | None) -> list[tuple[UUID, bool]]:
    """The next entities, and whether the index says of each what its value says."""
    tenancy.enter(tenancy.Scope(field.tenant_id))
    model, document = builder.SOURCES[field.entity_type]
    next_ = select(model.id, document[field.field_key].label("value")).where(
        model.tenant_id == field.tenant_id
    )
    if position is not None:
        next_ = next_.where(model.id > position)
    entity = next_.order_by(model.id).limit(BATCH).subquery()
    stored = (
        select(IndexRow.ordinal, *(getattr(IndexRow, name) for name in Entry._fields))
        .where(
            IndexRow.tenant_id == field.tenant_id,
            IndexRow.field_id == field.id,
            IndexRow.entity_id == entity.c.id,
        )
        .order_by(IndexRow.ordinal)
        .lateral()  # with its order, so that each entity's rows are looked up by the key
    )
    joined = (
        select(entity, stored).outerjoin(stored, true()).order_by(entity.c.id, stored.c.ordinal)
    )
    field_type = FieldType(field.field_type)
    return [
        (entity_id, _is_right(field_type, list(found)))
        for entity_id, found in groupby(db.session.execute(joined), key=lambda row: row.id)
    ]


def _is_right(field_type: FieldType, found: list[Any]) -> bool:
    stored = [(row.ordinal, Entry(*row[3:])) for row in found if row.ordinal is not None]
    return stored == list(enumerate(entries_of(field_type, found[0].value)))


def _repair(field: CustomField, entity_ids: list[UUID]) -> int:
    """Write the rows of these entities anew, unless the index is not complete (any more)."""
    tenancy.enter(tenancy.Scope(field.tenant_id))
    index = lock_index(field.tenant_id, field.id)
    if index is None or index.state != IndexState.READY:
        return 0
    model, document = builder.SOURCES[field.entity_type]
    locked = (
        select(model.id, document[field.field_key])
        .where(model.tenant_id == field.tenant_id, model.id.in_(entity_ids))
        .order_by(model.id)
        .with_for_update(key_share=True)
    )
    values = [(id_, value) for id_, value in db.session.execute(locked)]
    builder.replace(field, values)
    return len(values)


def _count_strays(field: CustomField) -> int:
    tenancy.enter(tenancy.Scope(field.tenant_id))
    return db.session.execute(select(func.count()).where(*_strays(field))).scalar_one()


def _remove_strays(field: CustomField) -> int:
    """Remove them, unless the field's rows have come to be wanted, or unwanted, in the meantime."""
    was_indexed = field.is_indexed
    tenancy.enter(tenancy.Scope(field.tenant_id))
    lock_index(field.tenant_id, field.id)
    lock_rules(field.tenant_id, field.entity_type)
    if builder.reread(field).is_indexed != was_indexed:
        return 0
    removed = db.session.execute(delete(IndexRow).where(*_strays(field)))
    return int(removed.rowcount)  # type: ignore[attr-defined]


def _strays(field: CustomField) -> list[ColumnElement[bool]]:
    """The rows of no entity; of a field that is not indexed, all its rows."""
    of_field = [IndexRow.tenant_id == field.tenant_id, IndexRow.field_id == field.id]
    if not field.is_indexed or field.entity_type not in builder.SOURCES:
        return of_field
    model, _ = builder.SOURCES[field.entity_type]
    unknown = except_(
        select(IndexRow.entity_id).where(*of_field),
        select(model.id).where(model.tenant_id == field.tenant_id),
    )
    among = func.array(unknown.scalar_subquery(), type_=ARRAY(Uuid))
    return [*of_field, IndexRow.entity_id == any_(among)]

"""Comparing a search index with the data, row for row, and repairing it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Uuid,
    any_,
    bindparam,
    delete,
    except_,
    func,
    select,
    true,
)

from app.core.db import tenancy, transactions
from app.core.db.statements import Statement
from app.custom_fields.entities import ENTITIES
from app.custom_fields.models import CustomField, FieldType, IndexRow, IndexState
from app.custom_fields.search_index import builder
from app.custom_fields.search_index.builder import BEFORE_ALL
from app.custom_fields.search_index.entries import Entry, entries_of
from app.custom_fields.search_index.index_state import is_indexed, lock_index, lock_rules

BATCH = 1000  # entities


@dataclass
class Findings:
    """What a check has found so far; ``wrong`` counts entities whose index rows are wrong."""

    entities: int = 0
    wrong: int = 0
    repaired: int = 0


def check(field: CustomField, *, repair: bool) -> Iterator[Findings]:
    """Compare batch by batch, and at the end look for rows of no entity; yields after each.

    Each batch is one statement, so it sees each entity and its rows at the same moment. A field
    that is not indexed should have no rows at all.
    """
    field = transactions.run(partial(_current, field))
    found = Findings()
    position = BEFORE_ALL
    while is_indexed(field) and field.entity_type in ENTITIES:
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
        found.repaired += transactions.run(partial(_delete_strays, field))
    yield found


def _current(field: CustomField) -> CustomField:
    tenancy.enter(tenancy.Scope(field.tenant_id))
    return builder.find_field(field.tenant_id, field.id)


def _compare(field: CustomField, position: UUID) -> list[tuple[UUID, bool]]:
    """The next entities, and whether the index rows of each agree with its value."""
    tenancy.enter(tenancy.Scope(field.tenant_id))
    rows = _comparing(field.entity_type).all(
        tenant_id=field.tenant_id,
        field_id=field.id,
        field_key=field.field_key,
        position=position,
        limit=BATCH,
    )
    field_type = FieldType(field.field_type)
    return [
        (entity_id, _is_right(field_type, list(found)))
        for entity_id, found in groupby(rows, key=lambda row: row.id)
    ]


@cache
def _comparing(entity_type: str) -> Statement:
    model = ENTITIES[entity_type].model
    entity = builder.next_entities(entity_type).subquery()
    stored = (
        select(IndexRow.ordinal, *(getattr(IndexRow, name) for name in Entry._fields))
        .where(
            IndexRow.tenant_id == bindparam("tenant_id"),
            IndexRow.field_id == bindparam("field_id"),
            IndexRow.entity_id == entity.c.id,
        )
        .order_by(IndexRow.ordinal)
        .lateral()  # with its order, so that each entity's rows are looked up by the key
    )
    clause = (
        select(entity, stored).outerjoin(stored, true()).order_by(entity.c.id, stored.c.ordinal)
    )
    return Statement(f"{model.__tablename__}.compare_with_index", clause, prepare=False)


def _is_right(field_type: FieldType, found: list[Any]) -> bool:
    stored = [(row.ordinal, Entry(*row[3:])) for row in found if row.ordinal is not None]
    return stored == list(enumerate(entries_of(field_type, found[0].value)))


def _repair(field: CustomField, entity_ids: list[UUID]) -> int:
    """Write the index rows of these entities anew, unless the index is no longer complete."""
    tenancy.enter(tenancy.Scope(field.tenant_id))
    index = lock_index(field.tenant_id, field.id)
    if index is None or index.state != IndexState.READY:
        return 0
    values = _locking(field.entity_type).all(
        tenant_id=field.tenant_id, field_key=field.field_key, entity_ids=entity_ids
    )
    builder.replace(field, values)
    return len(values)


@cache
def _locking(entity_type: str) -> Statement:
    entity = ENTITIES[entity_type]
    model = entity.model
    clause = (
        builder.values_of(entity)
        .where(model.id == any_(bindparam("entity_ids", type_=ARRAY(Uuid))))
        .order_by(model.id)
        .with_for_update(key_share=True)
    )
    return Statement(f"{model.__tablename__}.lock_values", clause, prepare=False)


def _count_strays(field: CustomField) -> int:
    tenancy.enter(tenancy.Scope(field.tenant_id))
    clause = select(func.count()).select_from(IndexRow).where(*_strays(_entities_of(field)))
    statement = Statement("custom_field_index_rows.count_strays", clause, prepare=False)
    number: int = statement.scalar(tenant_id=field.tenant_id, field_id=field.id)
    return number


def _delete_strays(field: CustomField) -> int:
    """Delete them, unless the field has become indexed, or not indexed, in the meantime."""
    tenancy.enter(tenancy.Scope(field.tenant_id))
    lock_index(field.tenant_id, field.id)
    lock_rules(field.tenant_id, field.entity_type)
    current = builder.find_field(field.tenant_id, field.id)
    if is_indexed(current) != is_indexed(field):
        return 0
    clause = delete(IndexRow).where(*_strays(_entities_of(field)))
    statement = Statement("custom_field_index_rows.delete_strays", clause, prepare=False)
    return statement.execute(tenant_id=field.tenant_id, field_id=field.id)


def _entities_of(field: CustomField) -> str | None:
    """The entity type whose entities may have rows; None where no entity may have any."""
    return field.entity_type if is_indexed(field) and field.entity_type in ENTITIES else None


def _strays(entity_type: str | None) -> list[ColumnElement[bool]]:
    """The conditions of index rows that belong to no entity of that type."""
    of_field = [
        IndexRow.tenant_id == bindparam("tenant_id"),
        IndexRow.field_id == bindparam("field_id"),
    ]
    if entity_type is None:
        return of_field
    known = ENTITIES[entity_type]
    unknown = except_(
        select(IndexRow.entity_id).where(*of_field),
        select(known.model.id).where(known.tenant_id == bindparam("tenant_id")),
    )
    ids = func.array(unknown.scalar_subquery(), type_=ARRAY(Uuid))
    return [*of_field, IndexRow.entity_id == any_(ids)]

"""``?meta_data.<field_key>=`` filters of one tenant's entities, answered from the search index."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, bindparam, select
from sqlalchemy.orm import InstrumentedAttribute

from app.core.db.list_conditions import Condition
from app.core.db.statements import Statement
from app.custom_fields.models import CustomField, FieldIndex, FieldType, IndexRow, IndexState
from app.custom_fields.search_index import conditions, filters
from app.custom_fields.search_index.conditions import Shape
from app.custom_fields.search_index.filters import IndexNotReady

FIND_SEARCHABLE = Statement(
    "custom_fields.find_searchable",
    select(CustomField.id, CustomField.field_key, CustomField.field_type, FieldIndex.state)
    .outerjoin(
        FieldIndex,
        (FieldIndex.tenant_id == CustomField.tenant_id) & (FieldIndex.field_id == CustomField.id),
    )
    .where(
        CustomField.tenant_id == bindparam("tenant_id"),
        CustomField.entity_type == bindparam("entity_type"),
        CustomField.is_searchable,
        CustomField.is_active,
    ),
)

Shapes = tuple[Shape, ...]


def among(
    tenant_id: UUID,
    entity_type: str,
    query: Mapping[str, str],
    entity_id: InstrumentedAttribute[UUID],
) -> Condition:
    """The condition on ``entity_id`` of these ``meta_data.…`` parameters, one or more.

    Raises Invalid as :func:`filters.read` for keys that are no searchable active fields of the
    tenant; IndexNotReady while the index of one of the fields is not complete.
    """
    rows = FIND_SEARCHABLE.all(tenant_id=tenant_id, entity_type=entity_type)
    fields = {row.field_key: row for row in rows}
    scans = filters.read(query, {key: [FieldType(row.field_type)] for key, row in fields.items()})
    values: dict[str, object] = {"index_tenant_id": tenant_id}
    shapes: list[Shapes] = []
    for number, scan in enumerate(scans):
        field = fields[scan.key]
        if field.state != IndexState.READY:
            raise IndexNotReady.of(scan.key, field.id)
        (only,) = scan.alternatives
        values[f"field_{number}"] = field.id
        values |= conditions.values_of(only.comparisons, f"value_{number}")
        shapes.append(only.shapes)
    return Condition(_condition(entity_id, tuple(shapes)), values, finds_ids=True)


@lru_cache(maxsize=100)
def _condition(
    entity_id: InstrumentedAttribute[UUID], scans: tuple[Shapes, ...]
) -> ColumnElement[bool]:
    found = [_entities(number, shapes) for number, shapes in enumerate(scans)]
    return filters.ids_found_by_all(entity_id, found)


def _entities(number: int, shapes: Shapes) -> Select[Any]:
    """The entities with an index row of one field that meets all conditions of ``shapes``."""
    return select(IndexRow.entity_id).where(
        IndexRow.tenant_id == bindparam("index_tenant_id"),
        IndexRow.field_id == bindparam(f"field_{number}"),
        *conditions.all_of(shapes, f"value_{number}"),
    )

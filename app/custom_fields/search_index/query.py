"""``?meta_data.<field_key>=`` filters of one tenant's entities, answered from the search index."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from sqlalchemy import Select, bindparam, select
from sqlalchemy.orm import InstrumentedAttribute

from app.core.db.list_conditions import Condition
from app.core.db.statements import Statement
from app.custom_fields.models import FieldType, IndexRow, IndexState
from app.custom_fields.search_index import conditions, filters
from app.custom_fields.search_index.filters import Alternatives, IndexNotReady

FIND_SEARCHABLE = Statement(
    "custom_fields.find_searchable",
    "SELECT f.id, f.field_key, f.field_type, i.state FROM custom_fields f"
    " LEFT JOIN custom_field_indexes i ON i.tenant_id = f.tenant_id AND i.field_id = f.id"
    " WHERE f.tenant_id = :tenant_id AND f.entity_type = :entity_type"
    " AND f.is_searchable AND f.is_active",
)


def among(
    tenant_id: UUID,
    entity_type: str,
    query: Mapping[str, str],
    entity_id: InstrumentedAttribute[UUID],
) -> Condition:
    """The condition on ``entity_id`` of these ``meta_data.…`` parameters, one or more.

    Raises Invalid as :func:`filters.read` for keys that are not searchable active fields of the
    tenant; IndexNotReady while the index of one of the fields is not complete.
    """
    rows = FIND_SEARCHABLE.all(tenant_id=tenant_id, entity_type=entity_type)
    fields = {row.field_key: row for row in rows}
    scans = filters.read(query, {key: [FieldType(row.field_type)] for key, row in fields.items()})
    values: dict[str, object] = {"index_tenant_id": tenant_id}
    for number, scan in enumerate(scans):
        field = fields[scan.key]
        if field.state != IndexState.READY:
            raise IndexNotReady.of(scan.key, field.id)
        values[f"field_{number}"] = field.id
    return filters.found_by_all(entity_id, scans, _entities, values)


def _entities(number: int, alternatives: Alternatives) -> Select[tuple[UUID]]:
    """The entities with an index row of one field that meets all conditions."""
    (shapes,) = alternatives  # a field has one type
    return select(IndexRow.entity_id).where(
        IndexRow.tenant_id == bindparam("index_tenant_id"),
        IndexRow.field_id == bindparam(f"field_{number}"),
        *conditions.all_of(shapes, f"value_{number}_0"),
    )

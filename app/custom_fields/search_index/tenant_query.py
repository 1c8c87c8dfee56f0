"""``?meta_data.<field_key>=`` filters of the platform's list of tenants.

Each tenant defines the fields of its own metadata, so fields with one key may have several types. A
value is compared as each of the types that it fits. The entity of such a field is the tenant itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from sqlalchemy import ARRAY, Select, Text, and_, any_, bindparam, select, union

from app.core.db.list_conditions import Condition
from app.core.db.statements import Statement
from app.core.errors import Invalid, value_error
from app.custom_fields.entities import TENANT
from app.custom_fields.models import CustomField, FieldType, IndexRow
from app.custom_fields.search_index import conditions, filters
from app.custom_fields.search_index.filters import Alternatives, IndexNotReady
from app.tenants.models import Tenant

MAX_FILTERS = 40  # twice the searchable fields of a tenant

IS_SEARCHED = and_(
    CustomField.entity_type == TENANT.entity_type, CustomField.is_searchable, CustomField.is_active
)
WITH_KEY_AND_TYPE = """
    f.entity_type = 'tenant' AND f.is_searchable AND f.is_active
    AND f.field_key = keys.key AND f.field_type = types.type
"""
# The order and the limit make PostgreSQL look up one field of each key and type in an index, instead
# of reading the fields of all tenants.
FIND_TYPES = Statement(
    "custom_fields.find_types_of_tenants",
    f"""
    SELECT keys.key, types.type, (
        SELECT f.id FROM custom_fields f
        JOIN custom_field_indexes i ON i.tenant_id = f.tenant_id AND i.field_id = f.id
        WHERE {WITH_KEY_AND_TYPE} AND i.state IN ('building', 'failed') LIMIT 1
    ) AS unready_id
    FROM unnest(CAST(:keys AS text[])) AS keys (key)
    CROSS JOIN unnest(ARRAY{[one.value for one in FieldType]}) AS types (type)
    CROSS JOIN LATERAL (
        SELECT FROM custom_fields f WHERE {WITH_KEY_AND_TYPE} ORDER BY f.id LIMIT 1
    ) AS first
    ORDER BY types.type
    """,  # noqa: S608
)


def among(query: Mapping[str, str]) -> Condition:
    """The condition on tenants of these ``meta_data.…`` parameters, one or more.

    Raises Invalid as :func:`filters.read` for keys of which no tenant has a searchable active field,
    and for more than :data:`MAX_FILTERS` parameters; IndexNotReady while the index of a field with
    one of the keys is not complete.
    """
    surplus = list(query)[MAX_FILTERS:]
    if surplus:
        reason = f"a query can have at most {MAX_FILTERS} meta_data filters"
        raise Invalid(*(value_error(["query", name], reason, query[name]) for name in surplus))
    types: dict[str, list[FieldType]] = {}
    unready = {}
    for row in FIND_TYPES.all(keys=list(filters.keys_of(query))):
        types.setdefault(row.key, []).append(FieldType(row.type))
        if row.unready_id is not None:
            unready[row.key] = row.unready_id
    values: dict[str, object] = {}
    scans = filters.read(query, types)
    for number, scan in enumerate(scans):
        if scan.key in unready:
            raise IndexNotReady.of(scan.key, unready[scan.key])
        values[f"key_{number}"] = scan.key
        for place, one in enumerate(scan.alternatives):
            values[f"types_{number}_{place}"] = [field_type.value for field_type in one.types]
    return filters.found_by_all(Tenant.id, scans, _tenants, values)


def _tenants(number: int, alternatives: Alternatives) -> Select[tuple[UUID]]:
    """The tenants with an index row that meets all conditions of one of the alternatives."""
    found = [
        select(IndexRow.entity_id)
        .join(
            CustomField,
            (CustomField.tenant_id == IndexRow.tenant_id) & (CustomField.id == IndexRow.field_id),
        )
        .where(
            IndexRow.entity_id == IndexRow.tenant_id,
            *conditions.all_of(shapes, f"value_{number}_{place}"),
            IS_SEARCHED,
            CustomField.field_key == bindparam(f"key_{number}"),
            CustomField.field_type == any_(bindparam(f"types_{number}_{place}", type_=ARRAY(Text))),
        )
        for place, shapes in enumerate(alternatives)
    ]
    return select(union(*found).subquery().c.entity_id) if len(found) > 1 else found[0]

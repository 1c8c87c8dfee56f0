"""``?meta_data.<field_key>=`` filters of the platform's list of tenants.

Each tenant defines the fields of its own metadata, so fields with one key may have several types. A
value is compared as each of the types that it fits. The entity of such a field is the tenant itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    Select,
    Text,
    and_,
    any_,
    bindparam,
    cast,
    column,
    func,
    or_,
    select,
    true,
    union,
)

from app.core.db.list_conditions import Condition
from app.core.db.statements import Statement
from app.core.errors import Invalid, value_error
from app.custom_fields.entities import TENANT
from app.custom_fields.models import CustomField, FieldIndex, FieldType, IndexRow, IndexState
from app.custom_fields.search_index import conditions, filters
from app.custom_fields.search_index.filters import Alternatives, IndexNotReady
from app.tenants.models import Tenant

MAX_FILTERS = 40  # twice the searchable fields of a tenant


def _rows_of(name: str, texts: Any) -> Any:
    """The texts of an array, as a table with one column."""
    rows = func.unnest(cast(texts, ARRAY(Text))).table_valued(column(name, Text), name=f"{name}s")
    return rows.render_derived()


IS_SEARCHED = and_(
    CustomField.entity_type == TENANT.entity_type, CustomField.is_searchable, CustomField.is_active
)

_keys = _rows_of("key", bindparam("keys", type_=ARRAY(Text)))
_types = _rows_of("type", [one.value for one in FieldType])
_fields = select(CustomField.id).where(
    IS_SEARCHED, CustomField.field_key == _keys.c.key, CustomField.field_type == _types.c.type
)
_unready = _fields.join(
    FieldIndex,
    (FieldIndex.tenant_id == CustomField.tenant_id) & (FieldIndex.field_id == CustomField.id),
).where(or_(FieldIndex.state == IndexState.BUILDING, FieldIndex.state == IndexState.FAILED))
# The order and the limit make PostgreSQL look up one field of each key and type in an index, instead
# of reading the fields of all tenants.
_first = _fields.order_by(CustomField.id).limit(1).lateral()
FIND_TYPES = Statement(
    "custom_fields.find_types_of_tenants",
    select(_keys.c.key, _types.c.type, _unready.limit(1).scalar_subquery().label("unready_id"))
    .join_from(_keys, _types, true())
    .join(_first, true())
    .order_by(_types.c.type),
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

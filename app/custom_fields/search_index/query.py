"""``?meta_data.<field_key>=`` filters, answered from the search index.

A query may ask for equality on any number of fields. Besides, it may have a range of one field
(``__gte``, ``__lte``, or both; numbers and dates) or one prefix (``__prefix``; texts).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

from pydantic_core import ValidationError
from sqlalchemy import ARRAY, ColumnElement, Select, Uuid, any_, bindparam, func, intersect, select
from sqlalchemy.orm import InstrumentedAttribute

from app.core.db.pages import Condition
from app.core.db.statements import Statement
from app.core.errors import Conflict, Entry, Invalid, value_error
from app.core.validation.messages import MAX_ENTRIES, entries
from app.custom_fields.models import CustomField, FieldIndex, FieldType, IndexRow, IndexState
from app.custom_fields.search_index import conditions
from app.custom_fields.search_index.conditions import EQUAL, Comparison, Shape

# ``meta_data.<name>`` or ``meta_data[<name>]``
FILTER = re.compile(r"meta_data(?:\.(?P<dotted>.*)|\[(?P<bracketed>.*)\])", re.DOTALL)

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


@dataclass(frozen=True)
class _Field:
    id: UUID
    key: str
    type: FieldType
    state: str | None


@dataclass(frozen=True)
class _Filter:
    parameter: str
    field: _Field
    operator: str
    comparison: Comparison


class IndexNotReady(Conflict):
    """The index of a field in the query is being built."""

    code = "index_not_ready"
    detail = "The search index of the field is not ready."


def among(
    tenant_id: UUID,
    entity_type: str,
    query: Mapping[str, str],
    entity_id: InstrumentedAttribute[UUID],
) -> Condition:
    """The condition on ``entity_id`` of these ``meta_data.…`` parameters, one or more.

    Raises Invalid at ``["query", parameter]`` for a key that is no searchable active field, an
    operator that its type does not have, a value that is not of its type, and a second range or
    prefix; IndexNotReady while the index of one of the fields is not complete.
    """
    filters = _read(query, _searchable_fields(tenant_id, entity_type))
    for one in filters:
        if one.field.state != IndexState.READY:
            raise IndexNotReady(
                f"The search index of {one.field.key} is not ready; its progress is at"
                f" /v1/custom-fields/{one.field.id}/index."
            )
    scans = list(_scans(filters))
    values: dict[str, Any] = {"index_tenant_id": tenant_id}
    for number, (field, comparisons) in enumerate(scans):
        values[_field_name(number)] = field.id
        for place, comparison in enumerate(comparisons):
            name = _value_name(number, place)
            values |= {f"{name}_{part}": value for part, value in comparison.values.items()}
    shapes = tuple(tuple(one.shape for one in comparisons) for _, comparisons in scans)
    return Condition(_condition(entity_id, shapes), values, finds_ids=True)


@lru_cache(maxsize=100)
def _condition(
    entity_id: InstrumentedAttribute[UUID], scans: tuple[Shapes, ...]
) -> ColumnElement[bool]:
    """The entities that all scans of the index find.

    Their ids are an array and not a join, so that the plan does not depend on how large PostgreSQL
    believes the tenant to be.
    """
    found = [_entities(number, shapes) for number, shapes in enumerate(scans)]
    ids = intersect(*found) if len(found) > 1 else found[0]
    return entity_id == any_(func.array(ids.scalar_subquery(), type_=ARRAY(Uuid)))


def _entities(number: int, shapes: Shapes) -> Select[Any]:
    """The entities with an index row of one field that meets all conditions of ``shapes``."""
    return select(IndexRow.entity_id).where(
        IndexRow.tenant_id == bindparam("index_tenant_id"),
        IndexRow.field_id == bindparam(_field_name(number)),
        *(
            conditions.condition(shape, _value_name(number, place))
            for place, shape in enumerate(shapes)
        ),
    )


def _field_name(number: int) -> str:
    return f"field_{number}"


def _value_name(number: int, place: int) -> str:
    return f"value_{number}_{place}"


def _searchable_fields(tenant_id: UUID, entity_type: str) -> dict[str, _Field]:
    rows = FIND_SEARCHABLE.all(tenant_id=tenant_id, entity_type=entity_type)
    return {
        row.field_key: _Field(row.id, row.field_key, FieldType(row.field_type), row.state)
        for row in rows
    }


def _read(query: Mapping[str, str], fields: Mapping[str, _Field]) -> list[_Filter]:
    filters: list[_Filter] = []
    errors: list[Entry] = []
    for parameter, text in query.items():
        field, operator = _target(_name(parameter), fields)
        if field is None:
            errors.append(_error(parameter, text, "this is not a searchable custom field"))
        elif operator not in conditions.operators_of(field.type):
            reason = f"fields of type {field.type} have no {operator} filter"
            errors.append(_error(parameter, text, reason))
        else:
            try:
                comparison = conditions.compare(field.type, operator, text)
            except ValidationError as fault:
                errors += entries(fault, "query", parameter)
            else:
                filters.append(_Filter(parameter, field, operator, comparison))
    errors = errors or list(_second_ranges(filters, query))
    if errors:
        raise Invalid(*errors[:MAX_ENTRIES])
    return filters


def _name(parameter: str) -> str:
    match = FILTER.fullmatch(parameter)
    return (match["dotted"] or match["bracketed"] or "") if match else ""


def _target(name: str, fields: Mapping[str, _Field]) -> tuple[_Field | None, str]:
    """The field and the operator; a field whose key ends like an operator takes precedence."""
    if name in fields:
        return fields[name], EQUAL
    key, separator, operator = name.rpartition("__")
    if separator and operator in conditions.OPERATORS:
        return fields.get(key), operator
    return None, EQUAL


def _second_ranges(filters: list[_Filter], query: Mapping[str, str]) -> Iterator[Entry]:
    """Errors for ranges and prefixes after the first; both ends of one range are one."""
    others = [one for one in filters if one.operator != EQUAL]
    for one in others[1:]:
        is_prefix = conditions.PREFIX in (one.operator, others[0].operator)
        if is_prefix or one.field != others[0].field:
            reason = "only one range or prefix can be asked for at once"
            yield _error(one.parameter, query[one.parameter], reason)


def _scans(filters: list[_Filter]) -> Iterator[tuple[_Field, Sequence[Comparison]]]:
    """One scan of the index for each equality, and one for both ends of a range."""
    for one in filters:
        if one.operator == EQUAL:
            yield one.field, [one.comparison]
    others = [one for one in filters if one.operator != EQUAL]
    if others:
        yield others[0].field, [one.comparison for one in others]


def _error(parameter: str, text: str, reason: str) -> Entry:
    return value_error(["query", parameter], reason, text)

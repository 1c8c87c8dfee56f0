"""``?meta_data.<field_key>=`` filters, answered from the search index.

Equality on any number of fields, and besides on at most one field either a range (``__gte``,
``__lte``, or both; numbers and dates) or a ``__prefix`` (texts).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any
from uuid import UUID

from pydantic_core import ValidationError
from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Select,
    Uuid,
    any_,
    bindparam,
    func,
    intersect,
    select,
)
from sqlalchemy.orm import InstrumentedAttribute

from app.core.db import statements
from app.core.db.ahead import Ahead
from app.core.errors import Conflict, Entry, Invalid, value_error
from app.core.http.pagination import Kept
from app.core.validation.messages import entries
from app.custom_fields.models import CustomField, FieldIndex, FieldType, IndexRow, IndexState
from app.custom_fields.search_index import comparisons
from app.custom_fields.search_index.comparisons import Comparison

PREFIX = "meta_data."

SEARCHABLE = statements.prepare(
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
    )
)


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
    compared: Comparison


def has_filters(query: Mapping[str, Any]) -> bool:
    """Whether a request's query filters by custom fields, which needs a tenant."""
    return any(name.startswith(PREFIX) for name in query)


def ahead(entity_type: str, query: Mapping[str, Any]) -> Ahead | None:
    """What :func:`among` reads first."""
    return Ahead(SEARCHABLE, {"entity_type": entity_type}) if has_filters(query) else None


def among(
    tenant_id: UUID,
    entity_type: str,
    query: Mapping[str, Any],
    entity_id: InstrumentedAttribute[UUID],
) -> Kept | None:
    """The condition on ``entity_id`` that the ``meta_data.…`` parameters of ``query`` ask for.

    Other parameters are not looked at; None where there are no such. Raises Invalid at ``["query", parameter]`` for a key that
    is no searchable active field, an operator that its type does not have, a value that is not of
    its type, and a second range or prefix; Conflict ``index_not_ready`` while the index of one of
    the fields is not complete.
    """
    asked = {name: text for name, text in query.items() if name.startswith(PREFIX)}
    if not asked:
        return None
    filters = _read(asked, _searchable(tenant_id, entity_type))
    for one in filters:
        if one.field.state != IndexState.READY:
            raise Conflict(
                f"The search index of {one.field.key} is not ready; its progress is at"
                f" /v1/custom-fields/{one.field.id}/index.",
                code="index_not_ready",
            )
    groups = list(_grouped(filters))
    values: dict[str, Any] = {"index_tenant_id": tenant_id}
    for number, (field, compared) in enumerate(groups):
        values[_field(number)] = field.id
        for place, value in enumerate(value for one in compared for value in one.values):
            values[_value(number, place)] = value
    names = tuple(tuple(one.condition for one in compared) for _, compared in groups)
    return Kept(_condition(entity_id, names), values, is_one_of_many=len(groups) > 1)


@lru_cache(maxsize=100)
def _condition(
    entity_id: InstrumentedAttribute[UUID], groups: tuple[tuple[str, ...], ...]
) -> ColumnElement[bool]:
    """An array and no join: which tenant is how large, the planner may know badly or not yet."""
    found = [_found(number, names) for number, names in enumerate(groups)]
    ids = intersect(*found) if len(found) > 1 else found[0]
    return entity_id == any_(func.array(ids.scalar_subquery(), type_=ARRAY(Uuid)))


def _found(number: int, names: tuple[str, ...]) -> Select[Any]:
    """The entities of which one row of the field's index fulfils all the named conditions."""
    places = count()
    return select(IndexRow.entity_id).where(
        IndexRow.tenant_id == bindparam("index_tenant_id"),
        IndexRow.field_id == bindparam(_field(number)),
        *(comparisons.condition(name, lambda: _value(number, next(places))) for name in names),
    )


def _field(number: int) -> str:
    return f"field_{number}"


def _value(number: int, place: int) -> str:
    return f"value_{number}_{place}"


def _searchable(tenant_id: UUID, entity_type: str) -> dict[str, _Field]:
    place = {"tenant_id": tenant_id, "entity_type": entity_type}
    return {
        row.field_key: _Field(row.id, row.field_key, FieldType(row.field_type), row.state)
        for row in statements.rows(SEARCHABLE, place, whole=True)
    }


def _read(asked: Mapping[str, str], fields: Mapping[str, _Field]) -> list[_Filter]:
    filters: list[_Filter] = []
    errors: list[Entry] = []
    for parameter, text in asked.items():
        field, operator = _target(parameter.removeprefix(PREFIX), fields)
        if field is None:
            errors.append(_fault(parameter, text, "this is not a searchable custom field"))
        elif operator not in comparisons.operators_of(field.type):
            reason = f"fields of type {field.type} have no {operator} filter"
            errors.append(_fault(parameter, text, reason))
        else:
            try:
                compared = comparisons.compare(field.type, operator, text)
            except ValidationError as fault:
                errors += entries(fault, "query", parameter)
            else:
                filters.append(_Filter(parameter, field, operator, compared))
    errors = errors or list(_too_many(filters, asked))
    if errors:
        raise Invalid(*errors)
    return filters


def _target(name: str, fields: Mapping[str, _Field]) -> tuple[_Field | None, str]:
    """The field and the operator; a field whose key ends like an operator is meant first."""
    if name in fields:
        return fields[name], comparisons.EQUAL
    key, separator, operator = name.rpartition("__")
    if separator and operator in comparisons.OPERATORS:
        return fields.get(key), operator
    return None, comparisons.EQUAL


def _too_many(filters: list[_Filter], asked: Mapping[str, str]) -> Iterator[Entry]:
    """The ranges and prefixes after the first; both ends of one range are one."""
    others = [one for one in filters if one.operator != comparisons.EQUAL]
    for one in others[1:]:
        is_prefix = comparisons.PREFIX in (one.operator, others[0].operator)
        if is_prefix or one.field != others[0].field:
            reason = "only one range or prefix can be asked for at once"
            yield _fault(one.parameter, asked[one.parameter], reason)


def _grouped(filters: list[_Filter]) -> Iterator[tuple[_Field, list[Comparison]]]:
    """Each equality by itself; the two ends of a range together, for one scan of the index."""
    between = [one for one in filters if one.operator != comparisons.EQUAL]
    for one in filters:
        if one.operator == comparisons.EQUAL:
            yield one.field, [one.compared]
    if between:
        yield between[0].field, [one.compared for one in between]


def _fault(parameter: str, text: str, reason: str) -> Entry:
    return value_error(["query", parameter], reason, text)

"""Reading ``meta_data.<field_key>=`` filters: the field, the operator and the value of each.

A query may ask for equality on any number of fields. Besides, it may have a range of one field
(``__gte``, ``__lte``, or both; numbers and dates) or one prefix (``__prefix``; texts).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from pydantic_core import ValidationError
from sqlalchemy import ARRAY, ColumnElement, Select, Uuid, any_, func, intersect
from sqlalchemy.orm import InstrumentedAttribute

from app.core.db.list_conditions import Condition
from app.core.errors import Conflict, Entry, Invalid, value_error
from app.core.validation.messages import MAX_ENTRIES, entries
from app.custom_fields.models import FieldType
from app.custom_fields.search_index import conditions
from app.custom_fields.search_index.conditions import EQUAL, Comparison, Shapes

# ``meta_data.<name>`` or ``meta_data[<name>]``
FILTER = re.compile(r"meta_data(?:\.(?P<dotted>.*)|\[(?P<bracketed>.*)\])", re.DOTALL)

Alternatives = tuple[Shapes, ...]  # of each alternative of a scan, the shapes of its comparisons
SelectOf = Callable[[int, Alternatives], Select[tuple[UUID]]]
Types = Mapping[str, Sequence[FieldType]]
"""The types that the fields with a key have, by key. One tenant's field has one type."""


@dataclass(frozen=True)
class Filter:
    """One parameter; ``comparisons`` has those types of the key's fields that its value fits."""

    parameter: str
    key: str
    operator: str
    comparisons: Mapping[FieldType, Comparison]


@dataclass(frozen=True)
class Alternative:
    """The comparisons, all of which must hold, for fields of these types."""

    types: tuple[FieldType, ...]
    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True)
class Scan:
    """One scan of the index for a key: for one equality, or for both ends of a range."""

    key: str
    alternatives: tuple[Alternative, ...]


class IndexNotReady(Conflict):
    code = "index_not_ready"
    detail = "The search index of the field is not ready; try again when a worker has built it."

    @classmethod
    def of(cls, key: str, field_id: UUID) -> IndexNotReady:
        return cls(
            f"The search index of {key} is not ready; its progress is at"
            f" /v1/custom-fields/{field_id}/index."
        )


def keys_of(query: Mapping[str, str]) -> set[str]:
    """The keys that these parameters may mean, with what may be an operator and without it."""
    names = {_name(parameter) for parameter in query}
    return names | {name.rpartition("__")[0] for name in names}


def read(query: Mapping[str, str], types: Types) -> list[Scan]:
    """The scans that answer these ``meta_data.…`` parameters.

    Raises Invalid at ``["query", parameter]`` for a key that ``types`` lacks, an operator that its
    types do not have, a value that is of none of its types, and a second range or prefix.
    """
    filters: list[Filter] = []
    errors: list[Entry] = []
    for parameter, text in query.items():
        try:
            filters.append(_read(parameter, text, types))
        except Invalid as fault:
            errors += fault.errors
    errors = errors or list(_second_ranges(filters, query))
    if errors:
        raise Invalid(*errors[:MAX_ENTRIES])
    ranges = [one for one in filters if one.operator != EQUAL]
    scans = [_scan([one]) for one in filters if one.operator == EQUAL]
    return [*scans, _scan(ranges)] if ranges else scans


def found_by_all(
    entity_id: InstrumentedAttribute[UUID],
    scans: Sequence[Scan],
    select_of: SelectOf,
    values: dict[str, object],
) -> Condition:
    """The condition that all scans find the entity.

    ``select_of`` makes the SELECT of the ids that a scan finds, of its number and of the shapes of
    its alternatives; ``values`` are the values of its other parameters.
    """
    shapes = []
    for number, scan in enumerate(scans):
        for place, one in enumerate(scan.alternatives):
            values |= conditions.values_of(one.comparisons, f"value_{number}_{place}")
        shapes.append(
            tuple(tuple(each.shape for each in one.comparisons) for one in scan.alternatives)
        )
    return Condition(_clause(entity_id, tuple(shapes), select_of), values, finds_ids=True)


@lru_cache(maxsize=200)
def _clause(
    entity_id: InstrumentedAttribute[UUID], scans: tuple[Alternatives, ...], select_of: SelectOf
) -> ColumnElement[bool]:
    """The ids are an array and not a join.

    So the plan does not depend on how large PostgreSQL believes the tables to be.
    """
    found = [select_of(number, alternatives) for number, alternatives in enumerate(scans)]
    ids = intersect(*found) if len(found) > 1 else found[0]
    return entity_id == any_(func.array(ids.scalar_subquery(), type_=ARRAY(Uuid)))


def _read(parameter: str, text: str, types: Types) -> Filter:
    key, operator = _target(_name(parameter), types)
    if key not in types:
        raise Invalid(_error(parameter, text, _why_unknown(key, types)))
    having = [one for one in types[key] if operator in conditions.operators_of(one)]
    if not having:
        named = " and ".join(types[key])
        reason = f"fields of type {named} have no {operator} filter"
        raise Invalid(_error(parameter, text, reason))
    comparisons: dict[FieldType, Comparison] = {}
    faults: list[ValidationError] = []
    for field_type in having:
        try:
            comparisons[field_type] = conditions.compare(field_type, operator, text)
        except ValidationError as fault:
            faults.append(fault)
    if not comparisons:
        raise Invalid(*entries(faults[0], "query", parameter))
    return Filter(parameter, key, operator, comparisons)


def _name(parameter: str) -> str:
    match = FILTER.fullmatch(parameter)
    return (match["dotted"] or match["bracketed"] or "") if match else ""


def _target(name: str, types: Types) -> tuple[str, str]:
    """The key and the operator; a field whose key ends like an operator takes precedence."""
    key, separator, operator = name.rpartition("__")
    if name not in types and separator and operator in conditions.OPERATORS:
        return key, operator
    return name, EQUAL


def _why_unknown(name: str, types: Types) -> str:
    key, _, operator = name.rpartition("__")
    if key not in types:
        return "this is not a searchable custom field; GET /v1/custom-fields lists them"
    known = {each for one in types[key] for each in conditions.operators_of(one) if each != EQUAL}
    others = ", ".join(sorted(known)) or "none"
    return f"there is no {operator} filter; besides the value itself, {key} has: {others}"


def _second_ranges(filters: list[Filter], query: Mapping[str, str]) -> Iterator[Entry]:
    """Errors for ranges and prefixes after the first; both ends of a range are one condition."""
    others = [one for one in filters if one.operator != EQUAL]
    for one in others[1:]:
        is_prefix = conditions.PREFIX in (one.operator, others[0].operator)
        if is_prefix or one.key != others[0].key:
            reason = "only one range or prefix can be asked for at once"
            yield _error(one.parameter, query[one.parameter], reason)
        elif one.comparisons.keys().isdisjoint(others[0].comparisons):
            reason = "both ends of a range must be of one type"
            yield _error(one.parameter, query[one.parameter], reason)


def _scan(filters: Sequence[Filter]) -> Scan:
    """The scan of filters of one key; types with the same comparisons are one alternative."""
    found: list[Alternative] = []
    for field_type in filters[0].comparisons:
        if all(field_type in one.comparisons for one in filters):
            comparisons = tuple(one.comparisons[field_type] for one in filters)
            same = next((one for one in found if one.comparisons == comparisons), None)
            if same is None:
                found.append(Alternative((field_type,), comparisons))
            else:
                merged = Alternative((*same.types, field_type), comparisons)
                found[found.index(same)] = merged
    return Scan(filters[0].key, tuple(found))


def _error(parameter: str, text: str, reason: str) -> Entry:
    return value_error(["query", parameter], reason, text)

"""Writing rows of the search index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from sqlalchemy import bindparam, delete
from sqlalchemy.dialects.postgresql import insert

from app.core.db.bulk import as_arrays, rows_from_arrays
from app.core.db.statements import Statement
from app.custom_fields.models import IndexRow
from app.custom_fields.search_index.entries import Entry, entries_of
from app.custom_fields.values.rules import rules_of

_table = IndexRow.__table__
_names = _table.columns.keys()
_new = insert(_table).from_select(_names, rows_from_arrays(_table, _names))
UPSERT = Statement(
    "custom_field_index_rows.upsert",
    _new.on_conflict_do_update(
        index_elements=_table.primary_key.columns,
        set_={name: _new.excluded[name] for name in Entry._fields},
    ),
)
_gone = rows_from_arrays(_table, ("field_id", "entity_id")).subquery("gone").c
DELETE_VALUES = Statement(
    "custom_field_index_rows.delete_values",
    delete(IndexRow).where(
        IndexRow.tenant_id == bindparam("tenant_id"),
        IndexRow.field_id == _gone.field_id,
        IndexRow.entity_id == _gone.entity_id,
    ),
)

Entity = tuple[UUID, Mapping[str, object], Mapping[str, object]]
"""The id of an entity, and its values before and after."""


def refresh(tenant_id: UUID, entity_type: str, entities: Iterable[Entity]) -> None:
    """Update the index of entities whose values change.

    It is part of the transaction that writes the values, and the caller has locked or created the
    entities. It sends at most two statements, and none where no searchable value differs.
    """
    rows: list[dict[str, object]] = []
    shortened: list[dict[str, object]] = []
    searchable = [rule for rule in rules_of(tenant_id, entity_type) if rule.is_searchable]
    for entity_id, before, after in entities if searchable else ():
        for rule in searchable:
            old = entries_of(rule.field_type, before.get(rule.key))
            new = entries_of(rule.field_type, after.get(rule.key))
            if new != old:
                rows += rows_of(tenant_id, rule.field_id, entity_id, new)
            if len(new) < len(old):
                shortened.append({"field_id": rule.field_id, "entity_id": entity_id})
    if shortened:
        DELETE_VALUES.execute(tenant_id=tenant_id, **as_arrays(shortened))
    write(rows)


def rows_of(
    tenant_id: UUID, field_id: UUID, entity_id: UUID, entries: Iterable[Entry]
) -> list[dict[str, object]]:
    """The rows of a field's value of an entity."""
    key = {"tenant_id": tenant_id, "field_id": field_id, "entity_id": entity_id}
    return [{**key, "ordinal": place, **each._asdict()} for place, each in enumerate(entries)]


def write(rows: Sequence[Mapping[str, object]]) -> None:
    """Insert rows, or replace the values of those that exist, in one statement."""
    if rows:
        UPSERT.execute(**as_arrays(rows))

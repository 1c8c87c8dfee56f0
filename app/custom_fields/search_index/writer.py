"""Writing rows of the search index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from app.core.db.statements import Statement
from app.custom_fields.search_index.entries import Entry, entries_of
from app.custom_fields.values.rules import rules_of

UPSERT = Statement(
    "custom_field_index_rows.upsert",
    """
INSERT INTO custom_field_index_rows (
    tenant_id, field_id, entity_id, ordinal,
    text_key, text_rest, number_value, exact_value, date_value
)
SELECT CAST(:tenant_id AS uuid), * FROM unnest(
    CAST(:field_ids AS uuid[]), CAST(:entity_ids AS uuid[]), CAST(:ordinals AS smallint[]),
    CAST(:text_key AS text[]), CAST(:text_rest AS text[]), CAST(:number_value AS float8[]),
    CAST(:exact_value AS numeric[]), CAST(:date_value AS timestamptz[])
)
ON CONFLICT (tenant_id, field_id, entity_id, ordinal) DO UPDATE SET
    text_key = excluded.text_key, text_rest = excluded.text_rest,
    number_value = excluded.number_value, exact_value = excluded.exact_value,
    date_value = excluded.date_value
""",
)

DELETE_VALUES = Statement(
    "custom_field_index_rows.delete_values",
    """
DELETE FROM custom_field_index_rows
USING unnest(CAST(:field_ids AS uuid[]), CAST(:entity_ids AS uuid[])) AS gone (field_id, entity_id)
WHERE custom_field_index_rows.tenant_id = :tenant_id
    AND custom_field_index_rows.field_id = gone.field_id
    AND custom_field_index_rows.entity_id = gone.entity_id
""",
)

IndexedValue = tuple[UUID, UUID, int, Entry]  # field, entity, ordinal, value columns
Entity = tuple[
    UUID, Mapping[str, object], Mapping[str, object]
]  # its id, the values before and after


def refresh(
    tenant_id: UUID,
    entity_type: str,
    entity_id: UUID,
    before: Mapping[str, object],
    after: Mapping[str, object],
) -> None:
    """Update the index of one entity whose values change from ``before`` to ``after``.

    It is part of the transaction that writes the values, and the caller has locked or created the
    entity. It sends at most two statements, and none where no searchable value differs.
    """
    refresh_many(tenant_id, entity_type, [(entity_id, before, after)])


def refresh_many(tenant_id: UUID, entity_type: str, entities: Iterable[Entity]) -> None:
    """:func:`refresh` of each entity, by the same statements."""
    rows: list[IndexedValue] = []
    shortened: list[tuple[UUID, UUID]] = []
    searchable = [rule for rule in rules_of(tenant_id, entity_type) if rule.is_searchable]
    for entity_id, before, after in entities if searchable else ():
        for rule in searchable:
            old = entries_of(rule.field_type, before.get(rule.key))
            new = entries_of(rule.field_type, after.get(rule.key))
            if new != old:
                rows += rows_of(rule.field_id, entity_id, new)
            if len(new) < len(old):
                shortened.append((rule.field_id, entity_id))
    if shortened:
        field_ids, entity_ids = map(list, zip(*shortened, strict=True))
        DELETE_VALUES.execute(tenant_id=tenant_id, field_ids=field_ids, entity_ids=entity_ids)
    if rows:
        write(tenant_id, rows)


def rows_of(field_id: UUID, entity_id: UUID, entries: Iterable[Entry]) -> list[IndexedValue]:
    return [(field_id, entity_id, ordinal, entry) for ordinal, entry in enumerate(entries)]


def write(tenant_id: UUID, rows: Sequence[IndexedValue]) -> None:
    """Insert rows, or replace the values of those that exist, in one statement."""
    fields, entities, ordinals, entries = zip(*rows, strict=True)
    columns = dict(zip(Entry._fields, map(list, zip(*entries, strict=True)), strict=True))
    UPSERT.execute(
        tenant_id=tenant_id,
        field_ids=list(fields),
        entity_ids=list(entities),
        ordinals=list(ordinals),
        **columns,
    )

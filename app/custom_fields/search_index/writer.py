"""Writing rows of the search index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import text

from app.core.db import statements
from app.custom_fields.search_index.entries import Entry, entries_of
from app.custom_fields.values.rules import rules_of

WRITE = statements.prepare(
    text("""
INSERT INTO custom_field_index_rows (
    tenant_id, field_id, entity_id, ordinal,
    text_key, text_rest, number_value, exact_value, date_value
)
SELECT :tenant_id, * FROM unnest(
    CAST(:field_id AS uuid[]), CAST(:entity_id AS uuid[]), CAST(:ordinal AS smallint[]),
    CAST(:text_key AS text[]), CAST(:text_rest AS text[]), CAST(:number_value AS float8[]),
    CAST(:exact_value AS numeric[]), CAST(:date_value AS timestamptz[])
)
ON CONFLICT (tenant_id, field_id, entity_id, ordinal) DO UPDATE SET
    text_key = excluded.text_key, text_rest = excluded.text_rest,
    number_value = excluded.number_value, exact_value = excluded.exact_value,
    date_value = excluded.date_value
""")
)

REMOVE = statements.prepare(
    text("""
DELETE FROM custom_field_index_rows
WHERE tenant_id = :tenant_id AND entity_id = :entity_id
    AND field_id = ANY (CAST(:field_ids AS uuid[]))
""")
)

Row = tuple[UUID, UUID, int, Entry]  # field, entity, ordinal, values


def refresh(
    tenant_id: UUID,
    entity_type: str,
    entity_id: UUID,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> None:
    """Make the index follow one entity from ``before`` to ``after``, in the write's transaction.

    The caller has the entity locked, or has just created it. At most two statements, none where
    no searchable value differs.
    """
    rows: list[Row] = []
    shrunk: list[UUID] = []
    for rule in rules_of(tenant_id, entity_type):
        if not rule.is_searchable:
            continue
        old = entries_of(rule.field_type, before.get(rule.key))
        new = entries_of(rule.field_type, after.get(rule.key))
        if new != old:
            rows += rows_of(rule.field_id, entity_id, new)
        if len(new) < len(old):
            shrunk.append(rule.field_id)
    if shrunk:
        place = {"tenant_id": tenant_id, "entity_id": entity_id, "field_ids": shrunk}
        statements.write(REMOVE, place)
    if rows:
        write(tenant_id, rows)


def rows_of(field_id: UUID, entity_id: UUID, entries: Iterable[Entry]) -> list[Row]:
    """The index rows of one value."""
    return [(field_id, entity_id, ordinal, entry) for ordinal, entry in enumerate(entries)]


def write(tenant_id: UUID, rows: Sequence[Row]) -> None:
    """Insert rows, or replace the values of those that are there."""
    fields, entities, ordinals, entries = zip(*rows, strict=True)
    columns = dict(zip(Entry._fields, map(list, zip(*entries, strict=True)), strict=True))
    statements.write(
        WRITE,
        {
            "tenant_id": tenant_id,
            "field_id": list(fields),
            "entity_id": list(entities),
            "ordinal": list(ordinals),
            **columns,
        },
    )

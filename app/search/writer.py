"""Keeping the search terms of rows current, in the transaction that writes the rows.

The caller has created or locked the row.
"""

from __future__ import annotations

from typing import Any

from app.core.db.queries import Change
from app.core.db.writes import Writes
from app.search.models import EntityType, SearchTerm
from app.search.sources import SOURCES

Key = tuple[Any, ...]  # the columns of a SearchTerm


def add(entity_type: EntityType, *rows: Any, into: Writes) -> None:
    """Add the terms of rows; those that exist stay."""
    added = [key for row in rows for key in keys(entity_type, row)]
    into.change_keys(SearchTerm, added=added)


def follow(entity_type: EntityType, row: Any, change: Change, *, into: Writes) -> None:
    """Replace the terms that ``change``, whose result is ``row``, has made different."""
    if SOURCES[entity_type].columns.isdisjoint(change.after):
        return
    before, after = (keys(entity_type, one) for one in (row._replace(**change.before), row))
    into.change_keys(SearchTerm, added=after - before, removed=before - after)


def remove(entity_type: EntityType, *rows: Any, into: Writes) -> None:
    """Remove the terms of rows that are deleted."""
    removed = [key for row in rows for key in keys(entity_type, row)]
    into.change_keys(SearchTerm, removed=removed)


def keys(entity_type: EntityType, row: Any) -> set[Key]:
    """The rows of ``search_terms`` for a row."""
    source = SOURCES[entity_type]
    tenant_id = source.tenant_id_of(row)
    return {(tenant_id, entity_type.value, term, row.id) for term in source.terms_of(row)}

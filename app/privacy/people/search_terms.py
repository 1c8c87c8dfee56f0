"""The search terms of rows from which a person is erased."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Connection, delete, insert, select

from app.core.db.tenancy import PLATFORM_TENANT_ID
from app.search import writer
from app.search.models import EntityType, SearchTerm
from app.search.sources import SOURCES

TERMS = SearchTerm.__table__


def rewrite_terms(connection: Connection, entity_type: EntityType, ids: Sequence[UUID]) -> None:
    """Delete the terms of these rows, and add those of the rows as they are now."""
    source = SOURCES[entity_type]
    table = source.model.__table__
    rows = connection.execute(
        select(*(table.c[name] for name in source.needed)).where(table.c.id.in_(ids))
    ).all()
    owners = {source.tenant_id_of(row) for row in rows} | {PLATFORM_TENANT_ID}
    connection.execute(
        delete(TERMS).where(
            TERMS.c.tenant_id.in_(owners),
            TERMS.c.entity_type == entity_type.value,
            TERMS.c.entity_id.in_(ids),
        )
    )
    keys = [key for row in rows for key in writer.keys(entity_type, row)]
    if keys:
        names = TERMS.columns.keys()
        connection.execute(insert(TERMS), [dict(zip(names, key, strict=True)) for key in keys])

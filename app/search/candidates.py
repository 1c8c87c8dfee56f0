"""The statement that reads the candidates of a search.

It reads at most :data:`CANDIDATES` index entries for each entity type and word, in the order of the
terms, and at most :data:`CANDIDATES` rows. So its work does not depend on how many rows match.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    CTE,
    Select,
    and_,
    bindparam,
    func,
    literal,
    literal_column,
    or_,
    select,
    union_all,
)
from sqlalchemy.dialects.postgresql import array
from sqlalchemy.orm import aliased

from app.core.db.statements import Statement
from app.search.models import EntityType, SearchTerm
from app.search.sources import SOURCES
from app.tenants.models import Tenant

CANDIDATES = 200
AFTER_ALL = "\U0010ffff"  # sorts after every character of a term

_owner = aliased(Tenant, name="owner")


def read(
    entity_types: Sequence[EntityType], prefixes: Sequence[str], tenant_id: UUID | None
) -> list[Any]:
    """Rows that have a term with the first prefix, or one with the rarest of the others.

    Each type gets the same share of the candidates, as far as it has so many. With ``tenant_id``
    only that tenant's rows are read.
    """
    values: dict[str, Any] = {} if tenant_id is None else {"tenant_id": tenant_id}
    for place, prefix in enumerate(prefixes):
        values |= {f"low_{place}": prefix, f"high_{place}": prefix + AFTER_ALL}
    statement = _statement(tuple(entity_types), len(prefixes), of_tenant=tenant_id is not None)
    return statement.all(**values)


@lru_cache(maxsize=200)
def _statement(
    entity_types: tuple[EntityType, ...], prefixes: int, *, of_tenant: bool
) -> Statement:
    scans = [
        _scan(entity_type, place, of_tenant=of_tenant)
        for entity_type in entity_types
        for place in range(prefixes)
    ]
    found = union_all(*scans).cte("found")
    rarest = (
        select(found.c.place)
        .where(found.c.place > 0)
        .group_by(found.c.place)
        .order_by(func.count(), found.c.place)
        .limit(1)
        .scalar_subquery()
    )
    entity = (found.c.entity_type, found.c.tenant_id, found.c.entity_id)
    chosen = (
        select(*entity)
        .where(or_(found.c.place == 0, found.c.place == rarest))
        .group_by(*entity)
        .order_by(func.min(found.c.place), func.min(found.c.number), *entity)
        .limit(CANDIDATES)
        .cte("chosen")
    )
    return Statement(
        "search_terms.find_rows", union_all(*(_rows(one, chosen) for one in entity_types))
    )


def _scan(entity_type: EntityType, place: int, *, of_tenant: bool) -> Select[Any]:
    """The first index entries of one type whose term has the prefix number ``place``."""
    order = (SearchTerm.term, SearchTerm.tenant_id, SearchTerm.entity_id)
    clause = (
        select(
            literal_column(f"'{entity_type.value}'").label("entity_type"),
            literal_column(str(place)).label("place"),
            SearchTerm.tenant_id,
            SearchTerm.entity_id,
            func.row_number().over(order_by=order).label("number"),
        )
        .where(
            SearchTerm.entity_type == entity_type.value,
            SearchTerm.term >= bindparam(f"low_{place}"),
            SearchTerm.term < bindparam(f"high_{place}"),
        )
        .order_by(*order)
        .limit(CANDIDATES)
    )
    return clause.where(SearchTerm.tenant_id == bindparam("tenant_id")) if of_tenant else clause


def _rows(entity_type: EntityType, chosen: CTE) -> Select[Any]:
    """The rows of one type, with the texts of their searched fields."""
    source = SOURCES[entity_type]
    model = source.model
    same = [model.id == chosen.c.entity_id]
    if source.tenant_column is not None:
        same.append(getattr(model, source.tenant_column) == chosen.c.tenant_id)
    return (
        select(
            literal(entity_type.value).label("entity_type"),
            model.id,
            source.title.label("title"),
            source.subtitle.label("subtitle"),
            source.is_active.label("is_active"),
            array([field.expression(model) for field in source.fields]).label("texts"),
            _owner.id.label("tenant_id"),
            _owner.slug.label("tenant_slug"),
            _owner.name.label("tenant_name"),
        )
        .select_from(chosen)
        .join(model, and_(*same))
        .outerjoin(_owner, _owner.id == chosen.c.tenant_id)
        .where(chosen.c.entity_type == entity_type.value)
    )

"""The statement that reads and ranks the candidates of a search.

It reads at most :data:`CANDIDATES` index entries for each entity type and prefix, in the order of
the terms, and at most :data:`CANDIDATES` rows. So its work does not depend on how many rows match.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    CTE,
    ColumnElement,
    Select,
    and_,
    bindparam,
    column,
    func,
    select,
    text,
    union_all,
)
from sqlalchemy.dialects.postgresql import array

from app.core.db.statements import Statement
from app.search.models import EntityType
from app.search.sources import SOURCES
from app.tenants.models import Tenant

CANDIDATES = 200
AFTER_WORD = "!"  # sorts after the space, and before every other character of a term
AFTER_ALL = "\U0010ffff"  # sorts after every character of a term
EQUAL, WHOLE_WORDS, PREFIX, APART = range(4)


def read(
    entity_types: Sequence[EntityType],
    phrase: str,
    words: Sequence[str],
    *,
    tenant_id: UUID | None,
    limit: int,
) -> list[Any]:
    """Rows that have a term with the prefix ``phrase``, then rows with the rarest of ``words``.

    The best come first: a term is equal to the phrase, it begins with the phrase's words, it begins
    with the phrase. Among equals active rows come before ended rows; then the order is that of the
    titles, and the newest first. Each type gets an equal share of the candidates, as far as it has
    so many. With ``tenant_id`` only that tenant's rows are read.
    """
    values: dict[str, object] = {"limit": limit, "after_words": phrase + AFTER_WORD}
    if tenant_id is not None:
        values["tenant_id"] = tenant_id
    for place, prefix in enumerate((phrase, *words)):
        values |= {f"low_{place}": prefix, f"high_{place}": prefix + AFTER_ALL}
    statement = _statement(tuple(entity_types), len(words), of_tenant=tenant_id is not None)
    return statement.all(**values)


@lru_cache(maxsize=200)
def _statement(entity_types: tuple[EntityType, ...], words: int, *, of_tenant: bool) -> Statement:
    chosen = _chosen(entity_types, words, of_tenant=of_tenant)
    rows = union_all(*(_rows(one, chosen) for one in entity_types)).subquery("rows").c
    best = select(*rows).order_by(*_best_first(rows)).limit(bindparam("limit")).cte("best")
    clause = (
        select(best, Tenant.slug.label("tenant_slug"), Tenant.name.label("tenant_name"))
        .outerjoin(Tenant, Tenant.id == best.c.tenant_id)
        .order_by(*_best_first(best.c))
    )
    return Statement("search_terms.find_rows", clause)


def _best_first(rows: Any) -> tuple[ColumnElement[Any], ...]:
    return rows.match, rows.is_active.desc(), func.lower(rows.title).collate("C"), rows.id.desc()


def _chosen(entity_types: tuple[EntityType, ...], words: int, *, of_tenant: bool) -> CTE:
    """The rows with index entries for the phrase, or for the word with the fewest entries.

    No word is chosen if a word has no entries at all.
    """
    scans = " UNION ALL ".join(
        _scan(entity_type, place, of_tenant=of_tenant)
        for entity_type in entity_types
        for place in range(1 + words)
    )
    clause = f"""
        WITH found AS ({scans}), counted AS (
            SELECT place, count(*) AS entries, count(*) OVER () AS words
            FROM found WHERE place > 0 GROUP BY place
        )
        SELECT entity_type, tenant_id, entity_id, min(match) AS match FROM found
        WHERE place = 0 OR place = (
            SELECT place FROM counted WHERE words = {words} ORDER BY entries, place LIMIT 1
        )
        GROUP BY entity_type, tenant_id, entity_id
        ORDER BY min(match) = {APART}, min(number), entity_type, tenant_id, entity_id
        LIMIT {CANDIDATES}
    """  # noqa: S608
    names = ("entity_type", "tenant_id", "entity_id", "match")
    return text(clause).columns(*map(column, names)).cte("chosen")


def _scan(entity_type: EntityType, place: int, *, of_tenant: bool) -> str:
    """The first index entries of one type whose term begins with the prefix number ``place``."""
    match = f"""
        CASE WHEN term = :low_0 THEN {EQUAL} WHEN term < :after_words THEN {WHOLE_WORDS}
        ELSE {PREFIX} END
    """
    return f"""(
        SELECT entity_type, {place} AS place, tenant_id, entity_id,
            row_number() OVER (ORDER BY term, tenant_id, entity_id) AS number,
            {APART if place else match} AS match
        FROM search_terms
        WHERE entity_type = '{entity_type.value}' AND term >= :low_{place} AND term < :high_{place}
            {"AND tenant_id = :tenant_id" if of_tenant else ""}
        ORDER BY term, tenant_id, entity_id LIMIT {CANDIDATES}
    )"""  # noqa: S608


def _rows(entity_type: EntityType, chosen: CTE) -> Select[Any]:
    """The rows of one type, with the texts of their searched fields."""
    source = SOURCES[entity_type]
    model = source.model
    same = [model.id == chosen.c.entity_id]
    if source.tenant_column is not None:
        same.append(getattr(model, source.tenant_column) == chosen.c.tenant_id)
    return (
        select(
            chosen,
            model.id,
            source.title.label("title"),
            source.subtitle.label("subtitle"),
            source.is_active.label("is_active"),
            array([field.expression(model) for field in source.fields]).label("texts"),
        )
        .join(model, and_(*same))
        .where(chosen.c.entity_type == entity_type.value)
    )

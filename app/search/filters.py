"""``?q=`` of lists: the rows with a term that begins so, of the first :data:`MOST` terms."""

from __future__ import annotations

from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, and_, text

from app.core.db.list_conditions import Condition
from app.core.db.tenancy import current_scope
from app.core.errors import Invalid, value_error
from app.search.candidates import AFTER_ALL
from app.search.models import EntityType
from app.search.terms import MAX_TERM, fold

MIN_QUERY, MAX_QUERY = 2, 255  # characters of a query; the first also of the folded one
MOST = 2_000


def phrase_of(query: str) -> str:
    """The folded query; raises Invalid for fewer than :data:`MIN_QUERY` characters."""
    phrase = fold(query)[:MAX_TERM]
    if len(phrase) < MIN_QUERY:
        reason = f"a search needs at least {MIN_QUERY} letters or digits"
        raise Invalid(value_error(["query", "q"], reason, query))
    return phrase


def take_q(
    filters: dict[str, Any], type_: EntityType, keys: str, tenant_id: UUID | None = None
) -> list[Condition]:
    """The condition of ``q``, which is taken out of the filters; none without it.

    ``keys`` are the columns with the ids of the tenant and of what is found. Raises Invalid as
    :func:`phrase_of`.
    """
    if "q" not in filters:
        return []
    phrase = phrase_of(filters.pop("q"))
    values: dict[str, object] = {"low": phrase, "high": phrase + AFTER_ALL}
    if tenant_id := tenant_id or current_scope().tenant_id:
        values["of_tenant"] = tenant_id
    return [Condition(_clause(type_, keys, of_tenant=tenant_id is not None), values)]


@cache
def _clause(type_: EntityType, keys: str, *, of_tenant: bool) -> ColumnElement[bool]:
    tenant = " AND tenant_id = CAST(:of_tenant AS uuid)" if of_tenant else ""
    terms = f"WHERE entity_type = '{type_}' AND term >= :low AND term < :high{tenant}"
    first = f"FROM search_terms {terms} ORDER BY term, tenant_id, entity_id LIMIT {MOST}"
    return and_(text(f"({keys}) IN (SELECT tenant_id, entity_id {first})"))

"""Search: find tenants, users, subscriptions and e-mail messages by the beginning of a word."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice
from typing import Any
from uuid import UUID

from app.core.db.tenancy import current_scope
from app.search import candidates
from app.search.filters import phrase_of
from app.search.models import EntityType
from app.search.sources import SOURCES
from app.search.terms import MAX_TERM, fold

MAX_SCANNED = 3  # the longest words, that candidates are read for
DEFAULT_LIMIT, MAX_LIMIT = 20, 50


def search(
    query: str,
    *,
    entity_types: Collection[EntityType] = tuple(EntityType),
    tenant_id: UUID | None = None,
    limit: int = DEFAULT_LIMIT,
) -> list[dict[str, object]]:
    """The rows that match every word of ``query``, best first (see :func:`candidates.read`).

    Words that stand together in the query may stand apart in the row, also in several fields.
    Raises Invalid as :func:`phrase_of`.
    """
    phrase = phrase_of(query)
    shown = tenant_id or current_scope().tenant_id
    wanted = [
        one
        for one in EntityType
        if one in entity_types and (shown is None or SOURCES[one].tenant_column is not None)
    ]
    if not wanted:
        return []
    words = [word[:MAX_TERM] for word in dict.fromkeys(map(fold, query.split())) if word]
    scanned = sorted(words, key=len, reverse=True)[:MAX_SCANNED] if words != [phrase] else []
    found = candidates.read(
        wanted, phrase, scanned, tenant_id=shown, limit=candidates.CANDIDATES if scanned else limit
    )
    results = (
        _result(row, matched)
        for row in found
        if (matched := _matched_field(row, phrase, words)) is not None
    )
    return list(islice(results, limit))


def _matched_field(row: Any, phrase: str, words: Sequence[str]) -> str | None:
    """The field that the query, or its first word, was found in; None if not all words are."""
    terms = [
        (term, field.name)
        for field, text in zip(SOURCES[row.entity_type].fields, row.texts, strict=True)
        for term in field.terms_of(fold(text))
    ]
    together = [(term, name) for term, name in terms if term.startswith(phrase)]
    if together:
        return min(together)[1]
    if all(any(term.startswith(word) for term, _ in terms) for word in words):
        return next(name for term, name in terms if term.startswith(words[0]))
    return None


def _result(row: Any, matched: str) -> dict[str, object]:
    """The answer for one row that was found. An e-mail message has no tenant."""
    tenant = {"id": row.tenant_id, "slug": row.tenant_slug, "name": row.tenant_name}
    return {
        "type": row.entity_type,
        "id": row.id,
        "tenant": None if row.tenant_slug is None else tenant,
        "title": row.title,
        "subtitle": row.subtitle,
        "matched": matched,
    }

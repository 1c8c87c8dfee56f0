"""Search: find tenants, users, subscriptions and e-mail messages by the beginning of a word."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import IntEnum
from typing import Any, NamedTuple
from uuid import UUID

from app.core.db.tenancy import narrow
from app.core.errors import Invalid
from app.core.validation.messages import refused
from app.search import candidates
from app.search.models import EntityType
from app.search.sources import SOURCES
from app.search.terms import MAX_TERM, fold

MIN_QUERY = 2  # characters of the folded query
MAX_SCANNED = 3  # words, the longest ones, that candidates are read for
DEFAULT_LIMIT, MAX_LIMIT = 20, 50


class Match(IntEnum):
    """How well a row matches the query; the best first."""

    COMPLETE = 0
    """A searched field is equal to the query."""
    WORDS = 1
    """The query is equal to words that stand together."""
    PREFIX = 2
    """The query is the beginning of such words."""
    APART = 3
    """The words of the query begin words that do not stand together."""


class Result(NamedTuple):
    """One row that was found. ``tenant`` is None for an e-mail message, which belongs to none.

    ``matched`` is the field that the query, or the first word of it, was found in.
    """

    type: EntityType
    id: UUID
    tenant: dict[str, Any] | None
    title: str
    subtitle: str
    matched: str


def search(
    query: str,
    *,
    entity_types: Collection[EntityType] = tuple(EntityType),
    tenant_id: UUID | None = None,
    limit: int = DEFAULT_LIMIT,
) -> list[Result]:
    """The rows that match every word of ``query``, best first; at most ``limit``.

    Exact matches come before prefixes, and active rows before ended ones; then the order is that of
    the titles, and the newest first. Only :data:`candidates.CANDIDATES` rows are compared. Raises
    Invalid if the folded query is shorter than :data:`MIN_QUERY` characters.
    """
    phrase = fold(query)
    if len(phrase) < MIN_QUERY:
        loc = ["query", "q"]
        raise Invalid(refused("string_too_short", loc, query, min_length=MIN_QUERY))
    shown = narrow(tenant_id)
    wanted = [
        one
        for one in EntityType
        if one in entity_types and (shown is None or SOURCES[one].tenant_column is not None)
    ]
    if not wanted:
        return []
    found = candidates.read(wanted, _prefixes(phrase), shown)
    ranked = [(key, row, matched) for row in found for key, matched in _rank(row, phrase)]
    ranked.sort(key=lambda one: one[0])
    return [_result(row, matched) for _, row, matched in ranked[:limit]]


def _prefixes(phrase: str) -> list[str]:
    """What terms begin with: the whole query, then its longest words, where it has several."""
    words = sorted(dict.fromkeys(phrase.split()), key=len, reverse=True)
    others = words[:MAX_SCANNED] if len(words) > 1 else []
    return [one[:MAX_TERM] for one in (phrase, *others)]


def _rank(row: Any, phrase: str) -> Iterator[tuple[tuple[Any, ...], str]]:
    """The row's place among the results, and the matched field; nothing if it does not match."""
    found = _match(row, phrase)
    if found is not None:
        match, matched = found
        yield (match, not row.is_active, fold(row.title), -row.id.int), matched


def _match(row: Any, phrase: str) -> tuple[Match, str] | None:
    """How well the row matches, and the field."""
    fields = SOURCES[EntityType(row.entity_type)].fields
    folded = [fold(text or "") for text in row.texts]
    words = [word[:MAX_TERM] for word in phrase.split()]
    phrase = phrase[:MAX_TERM]
    best: tuple[Match, str] | None = None
    begun: dict[str, str] = {}  # a word -> the field that has a term with it
    for field, text in zip(fields, folded, strict=True):
        for term in field.terms_of(text) if any(word in text for word in words) else ():
            if term.startswith(phrase):
                match = _quality(term, phrase, text)
                best = min(best or (match, field.name), (match, field.name), key=lambda o: o[0])
            for word in words:
                if term.startswith(word):
                    begun.setdefault(word, field.name)
    if best is None and len(begun) == len(set(words)):
        return Match.APART, begun[words[0]]
    return best


def _quality(term: str, phrase: str, text: str) -> Match:
    if phrase == text[:MAX_TERM]:
        return Match.COMPLETE
    return Match.WORDS if f"{term} ".startswith(f"{phrase} ") else Match.PREFIX


def _result(row: Any, matched: str) -> Result:
    tenant = None
    if row.tenant_id is not None:
        tenant = {"id": row.tenant_id, "slug": row.tenant_slug, "name": row.tenant_name}
    type_ = EntityType(row.entity_type)
    return Result(type_, row.id, tenant, row.title, row.subtitle, matched)

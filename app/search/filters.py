"""``?q=`` of lists: the rows that have a word with each of the given beginnings."""

from __future__ import annotations

from functools import cache

from sqlalchemy import ColumnElement, and_, text

from app.core.db.list_conditions import Condition
from app.core.errors import Invalid, value_error
from app.search.candidates import AFTER_ALL
from app.search.models import EntityType
from app.search.terms import MAX_TERM, fold

MIN_QUERY, MAX_QUERY = 2, 255  # characters of a query; the first also of the folded one
MAX_WORDS = 5


def words_of(query: str) -> list[str]:
    """The folded words of a query, without repeats.

    Raises Invalid if all together have fewer than :data:`MIN_QUERY` characters.
    """
    if len(fold(query)) < MIN_QUERY:
        reason = f"a search needs at least {MIN_QUERY} letters or digits"
        raise Invalid(value_error(["query", "q"], reason, query))
    return [word[:MAX_TERM] for word in dict.fromkeys(map(fold, query.split())) if word]


def matching(query: str, entity_type: EntityType, tenant_id: str, entity_id: str) -> Condition:
    """The condition that the search finds the row by each word, the first :data:`MAX_WORDS`.

    ``tenant_id`` and ``entity_id`` name the columns with the ids of what is searched. Raises Invalid
    as :func:`words_of`.
    """
    words = words_of(query)[:MAX_WORDS]
    values = {f"low_{place}": word for place, word in enumerate(words)}
    values |= {f"high_{place}": word + AFTER_ALL for place, word in enumerate(words)}
    return Condition(_clause(entity_type, tenant_id, entity_id, len(words)), values)


@cache
def _clause(type_: EntityType, tenant_id: str, entity_id: str, words: int) -> ColumnElement[bool]:
    found = (
        f"EXISTS (SELECT FROM search_terms WHERE entity_type = '{type_}'"
        f" AND search_terms.tenant_id = {tenant_id} AND entity_id = {entity_id}"
        f" AND term >= :low_{place} AND term < :high_{place})"
        for place in range(words)
    )
    return and_(*map(text, found))

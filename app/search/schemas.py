"""Requests and answers of /v1/search."""

from __future__ import annotations

from typing import Any

from app.core.http.pagination import ONE_TENANT
from app.core.validation.fields import Choice, Int, Literal, Nested, Str, Uuid
from app.core.validation.schemas import AnswerSchema, Schema
from app.search.filters import MAX_QUERY, MIN_QUERY
from app.search.models import EntityType
from app.search.service import DEFAULT_LIMIT, MAX_LIMIT
from app.search.sources import FIELD_NAMES

BY_WORDS = {
    "description": "Only rows with these words in a name, an address or an id, which may end early:"
    " `ada lo` finds Ada Lovelace. Of very many matches only the first in the alphabet.",
    "examples": ["ada"],
}
"""The description of ``q`` of a list."""
ANY_TYPE = "|".join(EntityType)


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "q": "ada",
        "types": "user,tenant",
        "title": "Ada Lovelace",
        "subtitle": "ada@example.com",
        "slug": "acme",
        "name": "Acme",
    }
    descriptions = {
        "tenant": "null for an e-mail message, which belongs to no tenant.",
        "matched": "The field that the query, or its first word, was found in.",
    }


class EntityTypes(Str):
    """Some entity types, separated by commas; loaded as a set of members."""

    def from_json(self, value: Any) -> frozenset[EntityType]:
        return frozenset(map(EntityType, super().from_json(value).split(",")))


class SearchQuerySchema(Documented):
    """What is searched."""

    q = Str(
        required=True,
        min_length=MIN_QUERY,
        max_length=MAX_QUERY,
        description="The beginnings of words, all of which must match; an id, and a text of"
        " several words, may be copied as it is. Case and accents do not matter. At least two"
        " letters or digits.",
    )
    types = EntityTypes(
        pattern=f"^({ANY_TYPE})(,({ANY_TYPE}))*$",
        description="Only these, separated by commas: "
        + ", ".join(f"`{one.value}`" for one in EntityType)
        + ". Types that the credential may not read are left out.",
    )
    tenant_id = Uuid(metadata=ONE_TENANT)
    limit = Int(ge=1, le=MAX_LIMIT, load_default=DEFAULT_LIMIT, description="The most results.")


class TenantNameSchema(Documented, AnswerSchema):
    """The tenant of a result."""

    id = Uuid()
    slug = Str(description="The tenant's slug.")
    name = Str(description="The tenant's name.")


class SearchResultSchema(Documented, AnswerSchema):
    """A row that was found."""

    has_pages = False

    type = Choice(EntityType, description="What was found.")
    id = Uuid()
    tenant = Nested(TenantNameSchema, nullable=True)
    title = Str(description="The row's name, for people.")
    subtitle = Str(description="More about the row, for people.")
    matched = Literal(*FIELD_NAMES)

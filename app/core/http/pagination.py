"""The query parameters of every list."""

from __future__ import annotations

from app.core.db.pages import DEFAULT_LIMIT, MAX_LIMIT
from app.core.validation.fields import Int, Str
from app.core.validation.schemas import Schema


class PageQuerySchema(Schema):
    """The query of every list; a list's own filters are fields of a subclass."""

    limit = Int(
        ge=1,
        le=MAX_LIMIT,
        load_default=DEFAULT_LIMIT,
        metadata={
            "description": "The most rows of a page. It has fewer, and a `next_cursor`, where they "
            "would take more than 8 MiB; it has at least one."
        },
    )
    cursor = Str(
        metadata={
            "description": "`next_cursor` of the page before.",
            "examples": ["AAZJq0Z1kEABk28uejt8HZ5PK2qMDR4v"],
        },
    )

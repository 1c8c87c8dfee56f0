"""The query parameters of every list."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar

from app.core.db.pages import DEFAULT_LIMIT, MAX_LIMIT, ListOrder, Paging
from app.core.validation.fields import AwareDateTime, Choice, Int, Str
from app.core.validation.schemas import Schema

ONE_TENANT = {"description": "Only one tenant's, for platform credentials."}
NEWEST_FIRST = Choice(
    ListOrder,
    load_default=ListOrder.NEWEST_FIRST,
    description="`-created_at`: newest first; `created_at`: oldest first.",
)
"""The ``order`` of a list that is newest first by default."""
PAGING = {field.name for field in fields(Paging)} - {"as_json"}


class PageQuerySchema(Schema):
    """The query of every list. A subclass has the filters of one list as further fields.

    ``load`` returns the parameters of this class together, as ``paging``.
    """

    as_json: ClassVar[bool] = False
    """True: the rows are only written as JSON, and no field of the schema changes a JSON column."""

    limit = Int(
        ge=1,
        le=MAX_LIMIT,
        load_default=DEFAULT_LIMIT,
        description="The most rows of a page. It has fewer, and a `next_cursor`, where they "
        "would take more than 8 MiB; it has at least one.",
    )
    cursor = Str(
        description="`next_cursor` of the page before, of the same list and order.",
        metadata={"examples": ["AAZJq0Z1kEABk28uejt8HZ5PK2qMDR4vZ1_c"]},
    )
    order = Choice(
        ListOrder,
        load_default=ListOrder.OLDEST_FIRST,
        description="`created_at`: oldest first; `-created_at`: newest first.",
    )
    created_after = AwareDateTime(description="Created at this time or later.")
    created_before = AwareDateTime(description="Created before this time.")
    updated_after = AwareDateTime(description="Created or last changed at this time or later.")

    def load(self, data: object, *, unknown: str | None = None) -> dict[str, Any]:  # type: ignore[override]
        """The subclass' filters, and the other parameters as ``paging``."""
        values = super().load(data, unknown=unknown)
        given = {name: values.pop(name) for name in PAGING if name in values}
        return {**values, "paging": Paging(**given, as_json=self.as_json)}

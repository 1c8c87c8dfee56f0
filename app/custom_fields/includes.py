"""The key that reads of custom fields can include."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.core.http.includes import Include
from app.core.validation.fields import Nested
from app.custom_fields.schemas import FieldIndexSchema
from app.custom_fields.search_index import index_state


def _indexes(rows: Sequence[Any]) -> list[Any]:
    found = {index.field_id: index for index in index_state.get_indexes([row.id for row in rows])}
    return [found[row.id] for row in rows]


INDEX = Include(
    "index",
    Nested(FieldIndexSchema, metadata={"description": "How far its search index is."}),
    _indexes,
)

"""Searching the resources of one type: the filter and the order in SQL, one page at a time.

A page begins after a :data:`Position`: the value that sorts its predecessor's last resource, as
text, and that resource's id. Without ``sortBy`` resources are in the order of their ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any, NamedTuple

from scim2_models import InvalidPathException, SearchRequest
from scim2_models.path import CompareOperator, Comparison
from sqlalchemy import ColumnElement, Select, Text, bindparam, cast, func, literal, tuple_

from app.connections.models import Connection
from app.core.db.statements import Statement
from app.core.validation.scalars import is_storable
from app.scim.filters import Columns, KeyText, Moments, as_condition, name_of

Position = tuple[str, str]


class Rows(NamedTuple):
    """The rows of one page."""

    total: int
    rows: list[Any]
    next: Position | None

    def up_to(self, most: int, size_of: Callable[[Any], int]) -> Rows:
        """The first rows of which the sizes add up to no more than ``most``; at least one."""
        sizes = accumulate(map(size_of, self.rows))
        count = max(1, sum(size <= most for size in sizes))
        if count >= len(self.rows):
            return self
        return Rows(self.total, self.rows[:count], _position(self.rows[count - 1]))


class Search:
    """The search of one resource type; ``clause`` selects the resources of a connection."""

    def __init__(self, name: str, clause: Select[Any], model: Any, columns: Columns) -> None:
        self._name = name
        self._clause = clause
        self._model = model
        self._columns = columns
        self._by_key = {
            path: Statement(
                f"{name}.find_by_{path}",
                clause.where(column.expression == bindparam("key")).limit(2),
            )
            for path, column in columns.items()
            if isinstance(column, KeyText)
        }

    def run(self, connection: Connection, request: SearchRequest, after: Position | None) -> Rows:
        """The page that is asked for; raises InvalidFilterException and InvalidPathException."""
        values = {"tenant_id": connection.tenant_id, "connection_id": connection.id}
        key = self._sort_key(request)
        unique = self._find_unique(request, values)
        if unique is not None:
            return unique
        ids = self._clause.with_only_columns(self._model.id, maintain_column_froms=True)
        if request.filter is not None:
            ids = ids.where(as_condition(request.filter, self._columns))
        counted = ids.with_only_columns(func.count(), maintain_column_froms=True)
        total = Statement(f"{self._name}.count", counted, prepare=False).scalar(**values)
        count = min(request.count or 0, total)
        if count == 0:
            return Rows(total, [], None)
        is_descending = request.sort_order == SearchRequest.SortOrder.descending
        order = [part.desc() if is_descending else part for part in (key, self._model.id)]
        paged = ids.order_by(*order).limit(literal(count + 1))
        if after is not None:
            place = tuple_(key, self._model.id)
            value, row_id = after
            last = tuple_(
                cast(literal(value), key.type), cast(literal(row_id), self._model.id.type)
            )
            paged = paged.where(place < last if is_descending else place > last)
        elif request.start_index is not None:
            paged = paged.offset(literal(min(request.start_index - 1, total)))
        of_page = self._clause.where(self._model.id.in_(paged.correlate(None)))
        # Only the ids of the rows that OFFSET skips are read.
        clause = of_page.add_columns(cast(key, Text).label("sorted_by")).order_by(*order)
        rows = Statement(f"{self._name}.search", clause, prepare=False).all(**values)
        has_more = len(rows) > count
        rows = rows[:count]
        is_cursor = request.cursor is not None
        return Rows(total, rows, _position(rows[-1]) if has_more and is_cursor else None)

    def _sort_key(self, request: SearchRequest) -> ColumnElement[Any]:
        if request.sort_by is None:
            key: ColumnElement[Any] = self._model.id.expression
            return key
        binding = request.sort_by.resolve()
        column = self._columns.get(name_of(binding)) if binding else None
        if not isinstance(column, KeyText | Moments):
            raise InvalidPathException(
                detail=f"Resources cannot be sorted by {str(request.sort_by)[:100]!r}."
            )
        return column.expression

    def _find_unique(self, request: SearchRequest, values: Mapping[str, object]) -> Rows | None:
        """The answer to ``userName eq "…"`` and the like, by index; None for other searches."""
        scim_filter = request.filter
        if scim_filter is None:
            return None
        node = scim_filter.ast
        if (
            not isinstance(node, Comparison)
            or node.op is not CompareOperator.eq
            or not isinstance(node.value, str)
            or not is_storable(node.value)
        ):
            return None
        binding = scim_filter.resolve_comparison(node.attr_path)
        path = name_of(binding) if binding else ""
        column = self._columns.get(path)
        if not isinstance(column, KeyText):
            return None
        statement = self._by_key[path]
        found = statement.all(**values, key=column.comparable(node.value))
        is_shown = (request.start_index or 1) == 1 and request.count != 0
        return Rows(len(found), found[: request.count] if is_shown else [], None)


def _position(row: Any) -> Position:
    return row.sorted_by, str(row[0].id)

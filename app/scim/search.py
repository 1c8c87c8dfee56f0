"""Searching the resources of one type: the filter in SQL, and one page in the order of the ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any, NamedTuple
from uuid import UUID

from scim2_models import SearchRequest
from scim2_models.path import CompareOperator, Comparison
from sqlalchemy import Select, bindparam, func, literal

from app.core.db.statements import Statement
from app.core.validation.scalars import is_storable
from app.scim.filters import Columns, KeyText, as_condition, path_of
from app.scim.models import Connection


class Rows(NamedTuple):
    """The rows of one page."""

    total: int
    rows: list[Any]
    next: str | None

    def up_to(self, most: int, size_of: Callable[[Any], int]) -> Rows:
        """The first rows of which the sizes add up to no more than ``most``; at least one."""
        sizes = accumulate(map(size_of, self.rows))
        count = max(1, sum(size <= most for size in sizes))
        if count >= len(self.rows):
            return self
        return Rows(self.total, self.rows[:count], str(self.rows[count - 1][0].id))


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

    def run(self, connection: Connection, request: SearchRequest, after: UUID | None) -> Rows:
        """The page that is asked for; raises InvalidFilterException."""
        values = {"tenant_id": connection.tenant_id, "connection_id": connection.id}
        unique = self._find_unique(request, values)
        if unique is not None:
            return unique
        ids = self._clause.with_only_columns(self._model.id, maintain_column_froms=True)
        if request.filter is not None:
            ids = ids.where(as_condition(request.filter, self._columns))
        total = self._count(ids).scalar(**values)
        count = min(request.count or 0, total)
        if count == 0:
            return Rows(total, [], None)
        paged = ids.order_by(self._model.id).limit(literal(count + 1))
        if after is not None:
            paged = paged.where(self._model.id > literal(after))
        elif request.start_index is not None:
            paged = paged.offset(literal(min(request.start_index - 1, total)))
        of_page = self._clause.where(self._model.id.in_(paged.correlate(None)))
        clause = of_page.order_by(
            self._model.id
        )  # of the rows that OFFSET skips only the ids are read
        rows = Statement(f"{self._name}.search", clause, prepare=False).all(**values)
        has_more = len(rows) > count
        rows = rows[:count]
        is_cursor = request.cursor is not None
        return Rows(total, rows, str(rows[-1][0].id) if has_more and is_cursor else None)

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
        path = path_of(scim_filter, node)
        column = self._columns.get(path)
        if not isinstance(column, KeyText):
            return None
        statement = self._by_key[path]
        found = statement.all(**values, key=column.comparable(node.value))
        is_shown = (request.start_index or 1) == 1 and request.count != 0
        return Rows(len(found), found[: request.count] if is_shown else [], None)

    def _count(self, clause: Select[Any]) -> Statement:
        counted = clause.with_only_columns(func.count(), maintain_column_froms=True)
        return Statement(f"{self._name}.count", counted, prepare=False)

"""Keyset pagination over ``(created_at, id)``, oldest or newest first.

A client that reads from the first page to the last gets each row that existed at the start exactly
once, even if rows are inserted meanwhile. Only rows that are deleted, or no longer match the
filters, can be absent.

If the rows of a page exceed :data:`MAX_BYTES`, the page has fewer rows, but at least one. Only
columns marked :data:`~app.core.db.models.UNBOUNDED` can have large values. The statement of a list
returns NULL for large values of these columns, so the size of its result is bounded. If there is
such a NULL, a second statement reads the sizes of the rows. A third one reads as many complete rows
as fit. So a page without large values needs one statement, which takes PostgreSQL 85 µs for 50
users. Without the check for large values it would take 81 µs, and with window functions that add
up the sizes of all rows 165 µs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Label,
    Table,
    Text,
    Uuid,
    bindparam,
    case,
    cast,
    func,
    literal,
    select,
    tuple_,
)

from app.core.db.list_conditions import Condition, between
from app.core.db.list_cursors import make_cursor, read_cursor
from app.core.db.models import Moment
from app.core.db.statements import Statement
from app.core.db.tenancy import current_scope
from app.extensions import Model

DEFAULT_LIMIT, MAX_LIMIT = 50, 100
MAX_BYTES = 8 * 1024 * 1024  # limit for the unbounded columns of a page, and for its JSON


class ListOrder(StrEnum):
    """The order of a list."""

    OLDEST_FIRST = "created_at"
    NEWEST_FIRST = "-created_at"


@dataclass(frozen=True)
class Paging:
    """The parameters that every list has: which rows are wanted, and in which order.

    ``created_after`` and ``updated_after`` are included in the period, ``created_before`` is not.
    ``as_json``: the rows are only written as JSON (see :mod:`app.core.db.json_rows`).
    """

    limit: int = DEFAULT_LIMIT
    cursor: str | None = None
    order: ListOrder = ListOrder.OLDEST_FIRST
    created_after: datetime | None = None
    created_before: datetime | None = None
    updated_after: datetime | None = None
    as_json: bool = False


FIRST_PAGE = Paging()


@dataclass(frozen=True)
class Page:
    """One page of rows of the list ``name``. ``next_cursor`` is None on the last page.

    A list without a name has one page only, which is never cut.
    """

    items: Sequence[Any]
    next_cursor: str | None
    name: str | None = None

    def first(self, count: int) -> Page:
        """The page cut to its first ``count`` rows; ``count`` is at least 1."""
        if count >= len(self.items) or self.name is None:
            return self
        return Page(self.items[:count], make_cursor(self.name, self.items[count - 1]), self.name)


class _Statements(NamedTuple):
    """The statements of a list with one combination of filters."""

    rows: Statement  # NULL stands for large values of the unbounded columns
    sizes: Statement  # for each row, the bytes of its unbounded columns
    whole_rows: Statement
    unbounded: tuple[str, ...]


def paginate(
    model: type[Model],
    paging: Paging,
    *conditions: Condition,
    equal: Mapping[str, object] | None = None,
    tenant_id: UUID | None = None,
    without: tuple[str, ...] = (),
    further: tuple[Label[Any], ...] = (),
    has_one_plan: bool = False,
) -> Page:
    """One page of at most ``paging.limit`` rows of ``model``.

    Columns in ``without`` are not read. Those in ``further`` are added; build them once, at import.
    ``equal`` maps columns to the values that they must have. All ``conditions`` must hold too.
    If the table has tenants, the list has only rows of ``tenant_id``, or else of the scope's tenant.
    For another tenant than the scope's it is empty, because row-level security hides the rows.
    ``has_one_plan`` says that one plan is best for all values of ``equal``: each column is a key or
    has no index. Then the statement is prepared. Otherwise the best plan depends on how many rows
    have the values. Raises Invalid at ``["query", "cursor"]`` for a cursor of another list or order.
    """
    table, equal = model.__table__, dict(equal or {})
    conditions += tuple(_in_period(table, paging))
    by_ids = any(condition.finds_ids for condition in conditions)
    prepare = by_ids if conditions else has_one_plan or not equal
    if "tenant_id" in table.c and not by_ids:
        shown_tenant = tenant_id or current_scope().tenant_id
        if shown_tenant is not None:
            equal["tenant_id"] = shown_tenant
    values = dict(equal)
    for condition in conditions:
        if condition.values.keys() & values.keys():
            raise ValueError("two conditions of a list have a parameter of the same name")
        values.update(condition.values)
    name = f"{table.name} {paging.order}"
    if paging.cursor is not None:
        values["last_moment"], values["last_id"] = read_cursor(name, paging.cursor)
    if paging.limit != DEFAULT_LIMIT:
        values["limit"] = paging.limit + 1
    statements = _list(
        table,
        without,
        further,
        tuple(equal),
        tuple(condition.clause for condition in conditions),
        frozenset(values),
        paging.order,
        longest=MAX_BYTES >> max(paging.limit, MAX_LIMIT).bit_length(),
        prepare=prepare,
        as_json=paging.as_json,
    )
    rows = statements.rows.all(**values)
    items = rows[: paging.limit]
    if any(getattr(row, column) is None for column in statements.unbounded for row in items):
        sizes = accumulate(statements.sizes.scalars(**{**values, "limit": paging.limit}))
        count = max(1, sum(size <= MAX_BYTES for size in sizes))
        items = statements.whole_rows.all(**{**values, "limit": count})
    has_more = len(rows) > len(items) > 0
    return Page(items, make_cursor(name, items[-1]) if has_more else None, name)


def _in_period(table: Table, paging: Paging) -> list[Condition]:
    """The conditions for the period. Rows of a table without ``updated_at`` never change."""
    created_after = paging.created_after
    changed = []
    if "updated_at" in table.c:
        changed = between(table.c.updated_at, paging.updated_after, None)
    elif paging.updated_after is not None:
        created_after = max(created_after or paging.updated_after, paging.updated_after)
    return [*between(table.c.created_at, created_after, paging.created_before), *changed]


@lru_cache(maxsize=500)
def _list(
    table: Table,
    without: tuple[str, ...],
    further: tuple[Label[Any], ...],
    equal: tuple[str, ...],
    clauses: tuple[ColumnElement[bool], ...],
    given: frozenset[str],
    order: ListOrder,
    *,
    longest: int,
    prepare: bool,
    as_json: bool,
) -> _Statements:
    """The statements for one combination of filters.

    ``given`` has the names of all values. ``longest`` is the largest size in bytes of a row's
    unbounded columns that the first statement returns.

    The default limit is a constant in the statement. If it were a parameter, PostgreSQL would plan
    at each execution. For a table with partitions, planning takes longer than running.
    """
    place = (table.c.created_at, table.c.id)
    page = select().where(*(table.c[name] == bindparam(name) for name in equal), *clauses)
    is_ascending = order is ListOrder.OLDEST_FIRST
    if "last_id" in given:
        last = tuple_(bindparam("last_moment", type_=Moment), bindparam("last_id", type_=Uuid))
        page = page.where(tuple_(*place) > last if is_ascending else tuple_(*place) < last)
    page = page.order_by(*(place if is_ascending else (key.desc() for key in place)))
    own = [column for column in table.c if column.name not in without]
    sizes = {c: func.octet_length(cast(c, Text)) for c in own if "unbounded" in c.info}
    short = [
        case((sizes[c] <= longest // len(sizes), c)).label(c.name) if c in sizes else c for c in own
    ]
    limit: BindParameter[int] = bindparam("limit")
    rows = page.add_columns(*short, *further).limit(
        limit if "limit" in given else DEFAULT_LIMIT + 1
    )
    size_of_row = page.add_columns(sum(sizes.values(), literal(0))).limit(limit)
    whole_rows = page.add_columns(*own, *further).limit(limit)
    name = f"{table.name}.list"
    return _Statements(
        Statement(name, rows, prepare=prepare, as_json=as_json),
        Statement(f"{name}_sizes", size_of_row, prepare=False),
        Statement(f"{name}_whole", whole_rows, prepare=False, as_json=as_json),
        tuple(column.name for column in sizes),
    )

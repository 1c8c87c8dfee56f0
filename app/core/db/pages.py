"""Keyset pagination over ``(created_at, id)``, oldest or newest first.

A client that reads from the first page to the last gets each row that existed at the start exactly
once, even if rows are inserted meanwhile. Only rows that are deleted, or no longer match the
filters, can be absent.

A page has fewer rows than asked for where they are large: PostgreSQL adds up their sizes and sends
no more than :data:`MAX_BYTES`, or one row.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Label, Select, Uuid, bindparam, func, or_, select, tuple_

from app.core.db.models import Moment
from app.core.db.statements import Statement, row_class
from app.core.errors import Invalid, value_error

DEFAULT_LIMIT, MAX_LIMIT = 50, 100
MAX_BYTES = 8 * 1024 * 1024  # of a page's rows in PostgreSQL, and of its JSON
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class ListOrder(StrEnum):
    """The order of a list."""

    OLDEST_FIRST = "created_at"
    NEWEST_FIRST = "-created_at"


@dataclass(frozen=True)
class Paging:
    """Which rows of a list are wanted, and in which order; the same for every list.

    The period includes ``created_after`` and ``updated_after`` and excludes ``created_before``.
    """

    limit: int = DEFAULT_LIMIT
    cursor: str | None = None
    order: ListOrder = ListOrder.OLDEST_FIRST
    created_after: datetime | None = None
    created_before: datetime | None = None
    updated_after: datetime | None = None


FIRST_PAGE = Paging()


@dataclass(frozen=True)
class Page:
    """One page of rows of the list ``name``; ``next_cursor`` is None on the last one.

    A list without a name has no further pages, so it is never cut.
    """

    items: Sequence[Any]
    next_cursor: str | None
    name: str | None = None

    def first(self, count: int) -> Page:
        """The page cut to its first ``count`` rows; ``count`` is at least 1."""
        if count >= len(self.items) or self.name is None:
            return self
        return Page(self.items[:count], make_cursor(self.name, self.items[count - 1]), self.name)


@dataclass(frozen=True)
class Condition:
    """A condition of a list, and the values of its parameters.

    Build the clause once, with ``bindparam``, because it is part of the key under which the list's
    statement is cached. ``finds_ids`` says that the clause allows only a few ids, of one tenant.
    Then one plan is best for all values, so the statement may be prepared, and the list adds no
    condition for the tenant.
    """

    clause: ColumnElement[bool]
    values: Mapping[str, Any]
    finds_ids: bool = False


def paginate(
    model: Any,
    paging: Paging,
    *conditions: Condition,
    equal: Mapping[str, Any] | None = None,
    tenant_id: UUID | None = None,
    without: tuple[str, ...] = (),
    further: tuple[Label[Any], ...] = (),
) -> Page:
    """One page of at most ``paging.limit`` rows of ``model``, ``without`` some columns.

    Each row also has the columns ``further``. Build these once, at import.
    ``equal`` gives columns and the values that they must have. All ``conditions`` must hold too.
    With ``tenant_id``, only rows of that tenant are in the list. Raises Invalid at
    ``["query", "cursor"]`` for a cursor that is not of this list and order.
    """
    columns = (*(c for c in model.__table__.columns if c.name not in without), *further)
    names = tuple(column.name for column in columns)
    equal = equal or {}
    values: dict[str, Any] = {"limit": paging.limit + 1, **equal}
    conditions += tuple(_in_period(model, paging))
    for condition in conditions:
        if condition.values.keys() & values.keys():
            raise ValueError("two conditions of a list have a parameter of the same name")
        values.update(condition.values)
    name = f"{model.__tablename__} {paging.order}"
    if paging.cursor is not None:
        values["last_moment"], values["last_id"] = read_cursor(name, paging.cursor)
    by_ids = any(condition.finds_ids for condition in conditions)
    if tenant_id is not None and not by_ids:
        values["tenant_id"] = tenant_id
    statement = _list(
        model,
        columns,
        tuple(equal),
        tuple(condition.clause for condition in conditions),
        of_tenant="tenant_id" in values and "tenant_id" not in equal,
        onwards=paging.cursor is not None,
        has_default_limit=paging.limit == DEFAULT_LIMIT,
        order=paging.order,
        prepare=by_ids if conditions else not equal,
    )
    make = row_class(model.__name__, names)._make
    rows = statement.all(**values)
    page = [make(row[:-1]) for row in rows[: paging.limit]]
    has_more = bool(rows) and rows[0].rows_found > len(page)
    return Page(page, make_cursor(name, page[-1]) if has_more else None, name)


def _in_period(model: Any, paging: Paging) -> list[Condition]:
    """Rows of a table without ``updated_at`` never change after their creation."""
    created_after = paging.created_after
    changed = []
    if hasattr(model, "updated_at"):
        changed = between(model.updated_at, paging.updated_after, None)
    elif paging.updated_after is not None:
        created_after = max(created_after or paging.updated_after, paging.updated_after)
    return [*between(model.created_at, created_after, paging.created_before), *changed]


def between(column: Any, since: datetime | None, until: datetime | None) -> list[Condition]:
    """Conditions that ``column`` is at or after ``since`` and before ``until``.

    A bound that is None adds no condition.
    """
    conditions = []
    if since is not None:
        conditions.append(Condition(_at_or_after(column), {f"{column.key}_since": since}))
    if until is not None:
        conditions.append(Condition(_before(column), {f"{column.key}_until": until}))
    return conditions


@lru_cache(maxsize=100)
def _at_or_after(column: Any) -> ColumnElement[bool]:
    clause: ColumnElement[bool] = column >= bindparam(f"{column.key}_since", type_=Moment)
    return clause


@lru_cache(maxsize=100)
def _before(column: Any) -> ColumnElement[bool]:
    clause: ColumnElement[bool] = column < bindparam(f"{column.key}_until", type_=Moment)
    return clause


@lru_cache(maxsize=500)
def _list(
    model: Any,
    columns: tuple[ColumnElement[Any], ...],
    equal: tuple[str, ...],
    clauses: tuple[ColumnElement[bool], ...],
    *,
    of_tenant: bool,
    onwards: bool,
    has_default_limit: bool,
    order: ListOrder,
    prepare: bool,
) -> Statement:
    """The statement for one combination of filters.

    ``prepare`` is False for a list whose best plan depends on the values of its filters. The usual
    limit is part of the statement: PostgreSQL plans one with an unknown limit anew each time, which
    takes longer than to run it where the table has partitions.
    """
    limit: Any = DEFAULT_LIMIT + 1 if has_default_limit else bindparam("limit")
    clause = select(*columns).order_by(*_sorted(model, order)).limit(limit)
    clause = clause.where(*(getattr(model, name) == bindparam(name) for name in equal), *clauses)
    if of_tenant:
        clause = clause.where(model.tenant_id == bindparam("tenant_id"))
    if onwards:
        place = tuple_(model.created_at, model.id)
        last = tuple_(bindparam("last_moment", type_=Moment), bindparam("last_id", type_=Uuid))
        clause = clause.where(place > last if order is ListOrder.OLDEST_FIRST else place < last)
    names = tuple(clause.selected_columns.keys())
    return Statement(f"{model.__tablename__}.list", _bounded(clause, names, order), prepare=prepare)


def _sorted(columns: Any, order: ListOrder) -> tuple[ColumnElement[Any], ...]:
    keys = (columns.created_at, columns.id)
    return keys if order is ListOrder.OLDEST_FIRST else tuple(key.desc() for key in keys)


def _bounded(clause: Select[Any], names: tuple[str, ...], order: ListOrder) -> Select[Any]:
    """The first rows of ``clause`` that together have at most MAX_BYTES; at least one row.

    A last column ``rows_found`` is the number of rows that ``clause`` found.
    """
    found = clause.subquery("found")
    keys = _sorted(found.c, order)
    measured = select(
        found,
        func.sum(func.pg_column_size(func.row(*found.c))).over(order_by=keys).label("total_size"),
        func.row_number().over(order_by=keys).label("place"),
        func.count().over().label("rows_found"),
    ).subquery("measured")
    return (
        select(*(measured.c[name] for name in (*names, "rows_found")))
        .where(or_(measured.c.total_size <= MAX_BYTES, measured.c.place == 1))
        .order_by(*_sorted(measured.c, order))
    )


def make_cursor(name: str, row: Any) -> str:
    """An opaque, URL-safe text that names the place of ``row`` in the list ``name``."""
    micros = (row.created_at - EPOCH) // MICROSECOND
    raw = micros.to_bytes(8) + row.id.bytes + _mark(name)
    return base64.urlsafe_b64encode(raw).decode()


def read_cursor(name: str, cursor: str) -> tuple[datetime, UUID]:
    """The place that :func:`make_cursor` wrote for the same list; Invalid for any other text."""
    try:
        raw = base64.urlsafe_b64decode(cursor.encode("ascii"))
        if len(raw) != 27 or base64.urlsafe_b64encode(raw).decode() != cursor:
            raise ValueError("not written here")
        moment = EPOCH + int.from_bytes(raw[:8]) * MICROSECOND
    except (ValueError, OverflowError, binascii.Error):
        reason = "this is not a cursor that a list answered"
        raise Invalid(value_error(["query", "cursor"], reason, cursor)) from None
    if raw[24:] != _mark(name):
        reason = "this cursor is of another list or order"
        raise Invalid(value_error(["query", "cursor"], reason, cursor))
    return moment, UUID(bytes=raw[8:24])


def _mark(name: str) -> bytes:
    """Three bytes by which a cursor of another list is recognized."""
    return hashlib.sha256(name.encode()).digest()[:3]

"""Keyset pagination over ``(created_at, id)``.

A client that reads from the first page to the last gets each row that existed at the start exactly
once, even if rows are inserted meanwhile. Only rows that are deleted, or no longer match the
filters, can be absent.

A page has fewer rows than asked for where they are large: PostgreSQL adds up their sizes and sends
no more than :data:`MAX_BYTES`, or one row.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, Uuid, bindparam, func, or_, select, tuple_

from app.core.db.models import Moment
from app.core.db.statements import Statement, row_class
from app.core.errors import Invalid, value_error

DEFAULT_LIMIT, MAX_LIMIT = 50, 100
MAX_BYTES = 8 * 1024 * 1024  # of a page's rows in PostgreSQL, and of its JSON
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
CURSOR_PATTERN = "^A[A-Za-z0-3][A-Za-z0-9_-]{30}$"  # every cursor until the year 9900


@dataclass(frozen=True)
class Page:
    """One page of rows; ``next_cursor`` is None on the last one.

    A list that ``is_whole`` has no further pages, so it is never cut.
    """

    items: Sequence[Any]
    next_cursor: str | None
    is_whole: bool = False

    def first(self, count: int) -> Page:
        """The page with its first ``count`` rows only, from 1."""
        if count >= len(self.items):
            return self
        last = self.items[count - 1]
        return Page(self.items[:count], make_cursor(last.created_at, last.id))


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
    *conditions: Condition,
    equal: Mapping[str, Any] | None = None,
    tenant_id: UUID | None = None,
    limit: int = DEFAULT_LIMIT,
    cursor: str | None = None,
    without: tuple[str, ...] = (),
) -> Page:
    """One page of at most ``limit`` rows of ``model``, oldest first, ``without`` some columns.

    ``equal`` gives columns and the values that they must have. All ``conditions`` must hold too.
    With ``tenant_id``, only rows of that tenant are in the list. Raises Invalid at
    ``["query", "cursor"]`` for a cursor that this service did not make.
    """
    names = tuple(c.name for c in model.__table__.columns if c.name not in without)
    equal = equal or {}
    values: dict[str, Any] = {"limit": limit + 1, **equal}
    for condition in conditions:
        if condition.values.keys() & values.keys():
            raise ValueError("two conditions of a list have a parameter of the same name")
        values.update(condition.values)
    if cursor is not None:
        values["after_moment"], values["after_id"] = read_cursor(cursor)
    by_ids = any(condition.finds_ids for condition in conditions)
    if tenant_id is not None and not by_ids:
        values["tenant_id"] = tenant_id
    statement = _list(
        model,
        names,
        tuple(equal),
        tuple(condition.clause for condition in conditions),
        of_tenant="tenant_id" in values and "tenant_id" not in equal,
        onwards=cursor is not None,
        prepare=by_ids if conditions else not equal,
    )
    make = row_class(model.__name__, names)._make
    rows = statement.all(**values)
    page = [make(row[:-1]) for row in rows[:limit]]
    has_more = bool(rows) and rows[0].rows_found > len(page)
    return Page(page, make_cursor(page[-1].created_at, page[-1].id) if has_more else None)


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
    names: tuple[str, ...],
    equal: tuple[str, ...],
    clauses: tuple[ColumnElement[bool], ...],
    *,
    of_tenant: bool,
    onwards: bool,
    prepare: bool,
) -> Statement:
    """The statement for one combination of filters.

    ``prepare`` is False for a list whose best plan depends on the values of its filters.
    """
    columns = [model.__table__.columns[name] for name in names]
    clause = select(*columns).order_by(model.created_at, model.id).limit(bindparam("limit"))
    clause = clause.where(*(getattr(model, name) == bindparam(name) for name in equal), *clauses)
    if of_tenant:
        clause = clause.where(model.tenant_id == bindparam("tenant_id"))
    if onwards:
        place = tuple_(bindparam("after_moment", type_=Moment), bindparam("after_id", type_=Uuid))
        clause = clause.where(tuple_(model.created_at, model.id) > place)
    return Statement(f"{model.__tablename__}.list", _bounded(clause, names), prepare=prepare)


def _bounded(clause: Select[Any], names: tuple[str, ...]) -> Select[Any]:
    """The first rows of ``clause`` that together have at most MAX_BYTES, but one at least.

    Each row has the number of all ``rows_found`` at its end.
    """
    found = clause.subquery("found")
    order = (found.c.created_at, found.c.id)
    measured = select(
        found,
        func.sum(func.pg_column_size(func.row(*found.c))).over(order_by=order).label("total_size"),
        func.row_number().over(order_by=order).label("place"),
        func.count().over().label("rows_found"),
    ).subquery("measured")
    return (
        select(*(measured.c[name] for name in (*names, "rows_found")))
        .where(or_(measured.c.total_size <= MAX_BYTES, measured.c.place == 1))
        .order_by(measured.c.created_at, measured.c.id)
    )


def make_cursor(created_at: datetime, row_id: UUID) -> str:
    """An opaque, URL-safe text that names a row's place in the order."""
    micros = (created_at - EPOCH) // MICROSECOND
    return base64.urlsafe_b64encode(micros.to_bytes(8) + row_id.bytes).decode()


def read_cursor(cursor: str) -> tuple[datetime, UUID]:
    """The place that :func:`make_cursor` wrote; Invalid for any other text."""
    try:
        raw = base64.urlsafe_b64decode(cursor.encode("ascii"))
        if len(raw) != 24 or base64.urlsafe_b64encode(raw).decode() != cursor:
            raise ValueError("not written here")
        micros = int.from_bytes(raw[:8])
        moment = EPOCH + micros * MICROSECOND
        return moment, UUID(bytes=raw[8:])
    except (ValueError, OverflowError, binascii.Error):
        reason = "this is not a cursor that a list answered"
        raise Invalid(value_error(["query", "cursor"], reason, cursor)) from None

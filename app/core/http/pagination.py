"""Keyset pagination over ``(created_at, id)``.

A walk from the first page to the last sees every row that existed when it started exactly once,
whatever is inserted meanwhile.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Select, Uuid, bindparam, select, tuple_

from app.core.db import statements
from app.core.db.models import Moment
from app.core.errors import Invalid, value_error
from app.core.validation.fields import Int, Str
from app.core.validation.schemas import Schema

DEFAULT_LIMIT, MAX_LIMIT = 50, 100
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
CURSOR_PATTERN = "^A[A-Za-z0-3][A-Za-z0-9_-]{30}$"  # what it looks like until the year 9900


@dataclass(frozen=True)
class Page:
    """One page of rows; ``next_cursor`` is None on the last one."""

    items: Sequence[Any]
    next_cursor: str | None


class Kept(NamedTuple):
    """A condition that is built once and kept, and the values that it holds rows to now.

    It names few of one tenant's rows by their ids, so that no value makes another plan the best one.
    ``is_one_of_many``: there are too many of its kind to have each prepared.
    """

    condition: ColumnElement[bool]
    values: Mapping[str, Any]
    is_one_of_many: bool


class PageQuerySchema(Schema):
    """The query of every list; a list's own filters are fields of a subclass."""

    limit = Int(ge=1, le=MAX_LIMIT, load_default=DEFAULT_LIMIT)
    cursor = Str(
        example="AAZJq0Z1kEABk28uejt8HZ5PK2qMDR4v",
        metadata={"description": "`next_cursor` of the page before."},
    )


def paginate(
    model: Any,
    *conditions: ColumnElement[bool],
    among: Kept | None = None,
    equal: Mapping[str, Any] | None = None,
    tenant_id: UUID | None = None,
    limit: int = DEFAULT_LIMIT,
    cursor: str | None = None,
) -> Page:
    """One page (1..100) of ``model``'s rows, oldest first.

    Those of one tenant where ``tenant_id`` is given, or ``among`` those of a kept condition, whose
    columns ``equal`` their values and that fit all ``conditions``.

    Raises Invalid at ``["query", "cursor"]`` for a cursor that this service did not make.
    """
    values: dict[str, Any] = {"limit": limit + 1, **(among.values if among else {})}
    if cursor is not None:
        values["after_moment"], values["after_id"] = read_cursor(cursor)
    onwards = cursor is not None
    if among is not None:
        statement = _among(model, among.condition, among.is_one_of_many, onwards=onwards)
    else:
        statement = _walk(model, of_tenant=tenant_id is not None, onwards=onwards)
        if tenant_id is not None:
            values["tenant_id"] = tenant_id
    if conditions or equal:
        statement = statement.where(*conditions).filter_by(**(equal or {}))
    rows = statements.scalars(statement, values, whole=True)
    page = rows[:limit]
    return Page(page, make_cursor(page[-1].created_at, page[-1].id) if len(rows) > limit else None)


def between(
    moment: Any, since: datetime | None, until: datetime | None
) -> list[ColumnElement[bool]]:
    """The conditions that a column's ``moment`` is at ``since`` or later, and before ``until``."""
    conditions = [] if since is None else [moment >= since]
    return conditions if until is None else [*conditions, moment < until]


@lru_cache(maxsize=500)
def _among(
    model: Any, condition: ColumnElement[bool], is_one_of_many: bool, *, onwards: bool
) -> Select[Any]:
    """Without the tenant, whose size PostgreSQL may misjudge: so the ids alone lead to the rows."""
    statement = _walk(model, of_tenant=False, onwards=onwards).where(condition)
    if is_one_of_many:
        return statements.keep(statement)
    return statements.prepare(statement, for_good=False)


@cache
def _walk(model: Any, *, of_tenant: bool, onwards: bool) -> Select[Any]:
    """Prepared; what narrows a list by values is not, since its best plan depends on them."""
    statement = select(model).order_by(model.created_at, model.id).limit(bindparam("limit"))
    if of_tenant:
        statement = statement.where(model.tenant_id == bindparam("tenant_id"))
    if onwards:
        place = tuple_(bindparam("after_moment", type_=Moment), bindparam("after_id", type_=Uuid))
        statement = statement.where(tuple_(model.created_at, model.id) > place)
    return statements.prepare(statement)


def make_cursor(created_at: datetime, row_id: UUID) -> str:
    """An opaque, URL-safe text that names a row's place in the order."""
    micros = (created_at - EPOCH) // MICROSECOND
    return base64.urlsafe_b64encode(micros.to_bytes(8) + row_id.bytes).decode()


def read_cursor(cursor: str) -> tuple[datetime, UUID]:
    """The place that :func:`make_cursor` wrote down; Invalid for any other text."""
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

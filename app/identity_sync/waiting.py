"""What an identity provider sent whose counterpart has not come yet.

A membership waits for its organization or its user. A person without any membership is set aside.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Text, Uuid, bindparam, cast, func, select, tuple_

from app.core.db.list_cursors import EPOCH, make_cursor, read_cursor
from app.core.db.models import Moment
from app.core.db.pages import FIRST_PAGE, ListOrder, Page, Paging
from app.core.db.statements import Statement
from app.identity_sync.models import IdentityObject
from app.identity_sync.store import Kind
from app.tenants.models import Tenant
from app.users.models import User

NAME = "waiting identities"
END = datetime(9999, 12, 31, tzinfo=UTC)
EDGES = {
    ListOrder.OLDEST_FIRST: (EPOCH, UUID(int=0)),
    ListOrder.NEWEST_FIRST: (END, UUID(int=2**128 - 1)),
}
"""The place before the first row."""


class Waiting(NamedTuple):
    """One object of a provider, since when it waits, and the kinds of what is missing."""

    id: UUID
    created_at: datetime
    source: str
    kind: str
    object_id: str
    organization_id: str | None
    user_id: str | None
    missing: tuple[Kind, ...] = ()


def _statement(order: ListOrder) -> Statement:
    """One page; the id, which only orders and pages, is made of the object's key."""
    table = IdentityObject.__table__.c
    key = func.concat_ws(" ", table.source, table.kind, table.object_id)
    place = table.created_at, cast(func.md5(key), Uuid)
    last = tuple_(bindparam("last_moment", type_=Moment), bindparam("last_id", type_=Uuid))
    is_ascending = order is ListOrder.OLDEST_FIRST
    page = (
        select(*table, place[1].label("id"))
        .where(
            table.is_waiting,
            ~table.is_deleted,
            table.created_at >= bindparam("since", type_=Moment),
            table.created_at < bindparam("until", type_=Moment),
            tuple_(*place) > last if is_ascending else tuple_(*place) < last,
        )
        .order_by(*(place if is_ascending else (column.desc() for column in place)))
        .limit(bindparam("limit"))
        .subquery("page")
    )
    person = IdentityObject.__table__.alias("person")
    has_user = (
        select(User.id)
        .where(User.tenant_id == Tenant.id, User.idp_user_id == page.c.user_id)
        .exists()
    )
    is_seen = person.c.state[("attributes", "seen")].is_not(None)
    has_email = person.c.state[("attributes", "email")].is_not(None)
    shown = page.c.created_at, page.c.id
    return Statement(
        "identity_objects.list_waiting",
        select(
            *(page.c[name] for name in Waiting._fields[:-1]),
            Tenant.id.is_not(None).label("has_organization"),
            (has_user | func.coalesce(is_seen | has_email, False)).label("has_user"),
            cast(page.c.state["place"].as_string(), Text).is_not(None).label("has_membership"),
        )
        .select_from(page)
        .outerjoin(Tenant, Tenant.idp_org_id == page.c.organization_id)
        .outerjoin(
            person,
            (person.c.source == page.c.source)
            & (person.c.kind == Kind.USER.value)
            & (person.c.object_id == page.c.user_id),
        )
        .order_by(*(shown if is_ascending else (column.desc() for column in shown))),
    )


LIST = {order: _statement(order) for order in ListOrder}


def list_waiting(paging: Paging = FIRST_PAGE) -> Page:
    """One page of what waits, in the order in which the provider first told of it."""
    name = f"{NAME} {paging.order}"
    moment, id_ = read_cursor(name, paging.cursor) if paging.cursor else EDGES[paging.order]
    rows = LIST[paging.order].all(
        limit=paging.limit + 1,
        since=paging.created_after or EPOCH,
        until=paging.created_before or END,
        last_moment=moment,
        last_id=id_,
    )
    items = [_waiting(row) for row in rows[: paging.limit]]
    has_more = len(rows) > len(items)
    return Page(items, make_cursor(name, items[-1]) if has_more else None, name)


def _waiting(row: Any) -> Waiting:
    """The row with what is missing; nothing is where the counterpart has just come."""
    *columns, has_organization, has_user, has_membership = row
    found = Waiting(*columns)
    if found.kind == Kind.USER:
        return found._replace(user_id=found.object_id, missing=(Kind.MEMBERSHIP,))
    has = {
        Kind.ORGANIZATION: has_organization,
        Kind.USER: has_user,
        Kind.MEMBERSHIP: has_membership,  # an event of a role may come before that of its member
    }
    return found._replace(missing=tuple(kind for kind, is_here in has.items() if not is_here))

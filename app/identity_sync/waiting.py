"""Objects of an identity provider whose counterparts have not arrived yet.

A membership waits for its organization or its user, as an accepted invitation does, and an SSO
connection for its organization. A person without any membership is set aside.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from app.core.db.list_cursors import EPOCH, make_cursor, read_cursor
from app.core.db.pages import FIRST_PAGE, ListOrder, Page, Paging
from app.core.db.statements import Statement
from app.identity_sync.store import MIRRORED, Kind

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
    sign, direction = (">", "") if order is ListOrder.OLDEST_FIRST else ("<", "DESC")
    return Statement(
        "identity_objects.list_waiting",
        f"""
        WITH page AS (
            SELECT * FROM identity_objects CROSS JOIN LATERAL (
                SELECT CAST(md5(concat_ws(' ', source, kind, object_id)) AS uuid) AS id
            ) AS named
            WHERE is_waiting AND NOT is_deleted
                AND created_at >= :since AND created_at < :until
                AND (created_at, id) {sign} (:last_moment, CAST(:last_id AS uuid))
            ORDER BY created_at {direction}, id {direction} LIMIT :limit
        )
        SELECT page.id, page.created_at, page.source, page.kind, page.object_id,
            page.organization_id, page.user_id, tenants.id IS NOT NULL AS has_organization,
            coalesce(person.state -> 'attributes' -> 'seen' IS NOT NULL
                OR person.state -> 'attributes' -> 'email' IS NOT NULL, false)
                OR EXISTS (SELECT FROM users WHERE users.tenant_id = tenants.id
                    AND users.idp_user_id = page.user_id) AS has_user,
            page.state ->> 'place' IS NOT NULL AS has_membership
        FROM page
        LEFT JOIN tenants ON tenants.idp_org_id = page.organization_id
        LEFT JOIN identity_objects AS person ON person.source = page.source
            AND person.kind = 'user' AND person.object_id = page.user_id
        ORDER BY page.created_at {direction}, page.id {direction}
        """,  # noqa: S608
    )


LIST = {order: _statement(order) for order in ListOrder}


def list_waiting(paging: Paging = FIRST_PAGE) -> Page:
    """One page of what waits, in the order in which the provider first sent it."""
    name = f"{NAME} {paging.order}"
    moment, id_ = read_cursor(name, paging.cursor) if paging.cursor else EDGES[paging.order]
    rows = LIST[paging.order].all(
        limit=paging.limit + 1,
        since=paging.created_after or EPOCH,
        until=paging.created_before or END,
        last_moment=moment,
        last_id=str(id_),
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
        Kind.USER: has_user or (found.kind in MIRRORED and found.user_id is None),
        Kind.MEMBERSHIP: has_membership,  # an event of a role may come before that of its member
    }
    return found._replace(missing=tuple(kind for kind, is_here in has.items() if not is_here))

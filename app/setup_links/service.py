"""Setup links: create, list, revoke. :mod:`app.auth.setup_sessions` opens them."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Label, and_, bindparam, case, func, select

from app.audit.service import record, record_creation
from app.auth.keys import digest_of
from app.auth.permissions import ALL, Permission
from app.auth.setup_sessions import permissions_of
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries
from app.core.db.list_conditions import Condition
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.statements import Statement
from app.core.db.writes import insert_row
from app.core.errors import Conflict, PermissionDenied
from app.setup_links.models import SetupLink, SetupScope
from app.tenants.models import Tenant

TOKEN_PREFIX = "setup_"  # noqa: S105
MAX_LINKS = 20  # of a tenant that have not ended
SECRET = frozenset({"digest", "session_digest"})


class SetupLinkState(StrEnum):
    """What has become of a link."""

    UNOPENED = "unopened"
    OPENED = "opened"
    REVOKED = "revoked"
    EXPIRED = "expired"


_IS_LIVE = and_(SetupLink.revoked_at.is_(None), SetupLink.expires_at > func.now())
IN_STATE: dict[SetupLinkState, ColumnElement[bool]] = {
    SetupLinkState.UNOPENED: and_(_IS_LIVE, SetupLink.opened_at.is_(None)),
    SetupLinkState.OPENED: and_(_IS_LIVE, SetupLink.opened_at.is_not(None)),
    SetupLinkState.REVOKED: SetupLink.revoked_at.is_not(None),
    SetupLinkState.EXPIRED: and_(
        SetupLink.revoked_at.is_(None), SetupLink.expires_at <= func.now()
    ),
}
"""What is true in each state, in terms that have indexes and statistics."""
STATE: Label[str] = case(
    *((is_in_state, state.value) for state, is_in_state in IN_STATE.items())
).label("state")
GET = Statement(
    "setup_links.get",
    select(*SetupLink.__table__.columns, STATE).where(SetupLink.id == bindparam("id")),
)
COUNT_LIVE = Statement(
    "setup_links.count_live",
    select(func.count()).where(SetupLink.tenant_id == bindparam("tenant_id"), _IS_LIVE),
)


class TooManySetupLinks(Conflict):
    code = "too_many_setup_links"
    detail = f"A tenant can have at most {MAX_LINKS} setup links at a time; revoke one first."


def get_link(link_id: UUID | str) -> Any:
    """The link with its state; raises NotFound."""
    return GET.get(SetupLink, id=queries.parse_id(link_id, SetupLink))


def list_links(
    paging: Paging = FIRST_PAGE,
    *,
    tenant_id: UUID | None = None,
    state: SetupLinkState | None = None,
) -> Page:
    """One page of a tenant's links (of all, for the platform), as :func:`get_link`."""
    found = [] if state is None else [Condition(IN_STATE[state], {})]
    return paginate(SetupLink, paging, *found, tenant_id=tenant_id, further=(STATE,))


def create(
    tenant_id: UUID,
    scopes: Sequence[SetupScope],
    *,
    lifetime: timedelta,
    contact: str = "",
    held: Collection[Permission] = ALL,
    held_until: datetime | None = None,
    actor: Actor,
) -> tuple[SetupLink, str]:
    """Create a link; returns it and its token, which is not stored.

    ``held`` are the creator's permissions, and ``held_until`` is the end of the creator, if that is
    a key that expires: no link lives longer. Raises NotFound for an unknown tenant,
    PermissionDenied for a scope with a permission that the creator lacks, and TooManySetupLinks.
    """
    names = sorted({scope.value for scope in scopes})
    for permission in sorted(permissions_of(names)):
        if permission not in held:
            raise PermissionDenied(f"This needs the permission {permission}.")
    queries.lock_with(Tenant, queries.visible_id(tenant_id))  # so no other request adds a link
    if COUNT_LIVE.scalar(tenant_id=tenant_id) >= MAX_LINKS:
        raise TooManySetupLinks
    token = TOKEN_PREFIX + secrets.token_urlsafe(32)
    expires_at = utcnow() + lifetime
    values = {
        "tenant_id": tenant_id,
        "scopes": names,
        "contact": contact,
        "digest": digest_of(token),
        "expires_at": min(expires_at, held_until or expires_at),
        **actor.authorship,
    }
    link = insert_row(SetupLink, values)
    record_creation("setup_link.created", link, actor=actor, hidden=SECRET)
    return link, token


def revoke(link_id: UUID | str, *, actor: Actor) -> None:
    """End a link and its session at once; a second revocation changes nothing. Raises NotFound."""
    link = queries.lock_row(SetupLink, link_id)
    if link.revoked_at is None:
        values = {"revoked_at": utcnow()}
        link, change = queries.update_row(SetupLink, link, values, actor_id=actor.id)
        record("setup_link.revoked", link, change, actor=actor, hidden=SECRET)

"""Sessions of the console, and the links that begin them. All functions need a transaction.

Secrets have 256 random bits. PostgreSQL stores only their digests. A session stores the claims of a
token, and each of its requests is authenticated with these claims. So a new role, a deactivation or
a suspension takes effect at the next request.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import bindparam, select

from app.auth.keys import digest_of
from app.auth.models import ConsoleSession, ConsoleTicket
from app.auth.tokens import Claims
from app.core.clock import utcnow
from app.core.db import tenancy
from app.core.db.queries import delete_where, find_row, update_where
from app.core.db.statements import Statement
from app.core.db.writes import insert_row
from app.memberships.models import Membership
from app.tenants.models import Tenant
from app.users.models import User

LIFETIME = timedelta(hours=12)
IDLE = timedelta(hours=2)
TICKET_LIFETIME = timedelta(minutes=10)
USE_RECORDED = timedelta(minutes=1)  # `last_used_at` is written at most this often


FORGET_SESSIONS = Statement(
    "console_sessions.forget_expired",
    "DELETE FROM console_sessions"
    " WHERE created_at <= :created_before OR last_used_at <= :used_before",
)
USE_TICKET = Statement(
    "console_tickets.use",
    "DELETE FROM console_tickets WHERE digest = :digest AND expires_at > :now"
    " RETURNING subject, org_id, data",
)
FORGET_TICKETS = Statement(
    "console_tickets.forget_expired", "DELETE FROM console_tickets WHERE expires_at <= :now"
)
ORGANIZATIONS = Statement(
    "console_sessions.organizations",
    select(Tenant.idp_org_id, Tenant.name, Membership.role)
    .join(User, User.tenant_id == Tenant.id)
    .join(Membership, (Membership.tenant_id == User.tenant_id) & (Membership.user_id == User.id))
    .where(
        User.idp_user_id == bindparam("subject"),
        Tenant.is_active,
        User.is_active,
        Membership.is_active,
    )
    .order_by(Tenant.name, Tenant.id)
    .limit(100),
)


def start(subject: str, org_id: str | None, email: str | None = None) -> str:
    """Begin a session; returns the secret for its cookie. ``email`` is a verified address."""
    secret = secrets.token_urlsafe(32)
    values = {"digest": digest_of(secret), "subject": subject, "org_id": org_id, "email": email}
    insert_row(ConsoleSession, values)
    return secret


def find(secret: str) -> Claims | None:
    """The claims of the session with this secret; None if it has ended. Its use is recorded."""
    now = utcnow()
    digest = digest_of(secret)
    found = find_row(ConsoleSession, digest=digest)
    if found is None or found.created_at <= now - LIFETIME or found.last_used_at <= now - IDLE:
        return None
    if found.last_used_at < now - USE_RECORDED:
        update_where(ConsoleSession, {"digest": digest}, {"last_used_at": now})
    return Claims(found.subject, found.org_id, email=found.email)


def end(secret: str) -> None:
    """End the session with this secret. An unknown secret is ignored."""
    delete_where(ConsoleSession, digest=digest_of(secret))


def organizations(subject: str) -> Sequence[Any]:
    """Organization, name and role for each active tenant with an active membership of a person."""
    tenancy.enter(tenancy.PLATFORM)
    return ORGANIZATIONS.all(subject=subject)


def create_ticket(
    purpose: str,
    *,
    subject: str | None = None,
    org_id: str | None = None,
    data: Mapping[str, object] | None = None,
) -> str:
    """Create a ticket; its secret works once, within ten minutes, and only for ``purpose``."""
    secret = secrets.token_urlsafe(32)
    values = {
        "digest": _ticket_digest(purpose, secret),
        "subject": subject,
        "org_id": org_id,
        "data": dict(data or {}),
        "expires_at": utcnow() + TICKET_LIFETIME,
    }
    insert_row(ConsoleTicket, values)
    return secret


def use_ticket(purpose: str, secret: str) -> Any:
    """Use a ticket; its subject, org_id and data, or None if it is unknown, used or expired."""
    return USE_TICKET.first(digest=_ticket_digest(purpose, secret), now=utcnow())


def forget_expired() -> int:
    """Delete the sessions and tickets that have expired; returns their number."""
    now = utcnow()
    sessions = FORGET_SESSIONS.execute(created_before=now - LIFETIME, used_before=now - IDLE)
    return sessions + FORGET_TICKETS.execute(now=now)


def _ticket_digest(purpose: str, secret: str) -> str:
    return digest_of(f"{purpose}:{secret}")

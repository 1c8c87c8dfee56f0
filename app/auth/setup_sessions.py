"""Sessions of setup links: one browser, a few permissions of one tenant, and no person.

All functions need a transaction. PostgreSQL stores only digests. Each request reads the link again,
so its end, its revocation and the tenant's suspension take effect at the next request.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from app.audit.models import AuditEvent
from app.auth.keys import digest_of
from app.auth.permissions import Permission, Role
from app.auth.principals import Principal
from app.auth.tokens import Claims
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries, tenancy
from app.core.db.statements import Statement
from app.core.db.writes import insert_row
from app.core.errors import PermissionDenied, Unauthenticated
from app.core.observability.logs import current_request_id
from app.setup_links.models import SetupLink, SetupScope
from app.tenants.models import Tenant

AUTHENTICATE = Statement(
    "auth.authenticate_setup_link",
    "SELECT id, tenant_id, tenant_name, idp_org_id, tenant_is_active, digest, scopes, expires_at"
    " FROM authenticate_setup_link(:digest)",
)
# What a session may call, and with which permissions.
PATHS = {
    SetupScope.SCIM: ("/v1/scim-connections",),
    SetupScope.DOMAINS: ("/v1/domains",),
    SetupScope.SSO: ("/v1/sso-connections",),
    SetupScope.WEBHOOK_ENDPOINTS: ("/v1/webhook-endpoints",),
    SetupScope.LOG_STREAMS: ("/v1/log-streams",),
}
PERMISSIONS = {
    SetupScope.SCIM: {
        Permission.SCIM_READ,
        Permission.SCIM_WRITE,
        Permission.USERS_WRITE,  # a connection exercises them
        Permission.MEMBERSHIPS_WRITE,
    },
    SetupScope.DOMAINS: {Permission.DOMAINS_READ, Permission.DOMAINS_WRITE},
    SetupScope.SSO: {Permission.SSO_READ},
    SetupScope.WEBHOOK_ENDPOINTS: {Permission.EVENTS_READ, Permission.EVENTS_WRITE},
    SetupScope.LOG_STREAMS: {
        Permission.EVENTS_READ,
        Permission.LOG_STREAMS_READ,
        Permission.LOG_STREAMS_WRITE,
    },
}


@dataclass(frozen=True)
class SetupClaims(Claims):
    """The console's credential for the API: not a person, but the secret of a session."""

    subject: str = ""
    org_id: str | None = None
    secret: str = ""


def open_link(token: str) -> str | None:
    """Begin the only session of a link; returns the secret for its cookie.

    None if the link is unknown, has ended or was opened before, or its tenant is suspended.
    """
    tenancy.enter(tenancy.PLATFORM)
    link = queries.find_locked(SetupLink, digest=digest_of(token))
    if link is None or link.opened_at or link.revoked_at or link.expires_at <= utcnow():
        return None
    if not queries.get_row(Tenant, link.tenant_id).is_active:
        return None
    secret = secrets.token_urlsafe(32)
    actor = _actor(link).id
    opened_at = utcnow()
    values = {"opened_at": opened_at, "session_digest": digest_of(secret)}
    queries.update_row(SetupLink, link, values, actor_id=actor)
    event = {  # the audit trail's service stands above this module
        "tenant_id": link.tenant_id,
        "actor": actor,
        "action": "setup_link.opened",
        "target_type": "setup_link",
        "target_id": str(link.id),
        "before": {"opened_at": None},
        "after": {"opened_at": opened_at},
        "request_id": current_request_id(),
    }
    insert_row(AuditEvent, event)
    return secret


def find(secret: str) -> Any | None:
    """The link whose session has this secret; None if it has ended, or its tenant is suspended."""
    link = AUTHENTICATE.first(digest=digest_of(secret))
    return link if link and link.tenant_is_active else None


def secret_of(token: str, known: Iterable[str]) -> str | None:
    """Which of the ``known`` secrets is that of the session of the link with this token."""
    digest = digest_of(token)
    links = ((secret, find(secret)) for secret in known)
    return next((secret for secret, link in links if link and link.digest == digest), None)


def principal_of(link: Any) -> Principal:
    """The principal of a link that :func:`find` has found."""
    tenancy.note(tenancy.Scope(link.tenant_id))
    actor = _actor(link)
    return Principal(actor, permissions_of(link.scopes), link.tenant_id, actor.id)


def authenticate(claims: SetupClaims, path: str) -> Principal:
    """The principal of a call that a setup page makes; sets the scope.

    Raises Unauthenticated if the session has ended, and PermissionDenied for a path of another
    scope: a permission alone would allow more than the pages do.
    """
    link = find(claims.secret)
    if link is None:
        raise Unauthenticated(reason="setup_link_ended")
    allowed = [start for scope in link.scopes for start in PATHS[SetupScope(scope)]]
    if not any(f"{path}/".startswith(f"{start}/") for start in allowed):
        raise PermissionDenied("This setup link is not for this.")
    return principal_of(link)


def permissions_of(scopes: list[str]) -> frozenset[Permission]:
    """All permissions of the scopes."""
    return frozenset[Permission]().union(*(PERMISSIONS[SetupScope(one)] for one in scopes))


def _actor(link: Any) -> Actor:
    return Actor(f"setup_link:{link.id}", Role.ADMIN)

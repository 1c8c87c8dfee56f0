"""From a credential to a principal: who asks, with which permissions, in which tenant.

Each look-up is one message to PostgreSQL: the functions ``authenticate_user`` and
``authenticate_key`` find the credential's rows, in the tenant scope that they enter for that, and
answer in one row. Role and state are read each time, so a demotion, a deactivation or a
suspension counts on the very next request.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text

from app.auth.permissions import ALL, ROLE_PERMISSIONS, TENANT, Permission, Role
from app.auth.tokens import Claims
from app.core import statements, tenancy
from app.core.actors import Actor
from app.core.errors import Forbidden, Unauthenticated

KEY_PREFIX = "sk_"

AUTHENTICATE_USER = statements.prepare(
    text(
        "SELECT is_superadmin, tenant_id, tenant_is_active, user_id, role"
        " FROM authenticate_user(:subject, :org_id)"
    )
)
AUTHENTICATE_KEY = statements.prepare(
    text("SELECT key_id, tenant_id, permissions, tenant_is_active FROM authenticate_key(:digest)")
)


@dataclass(frozen=True)
class Principal:
    """Who asks. ``tenant_id`` None is a platform credential, which sees every tenant."""

    actor: Actor
    permissions: frozenset[Permission]
    tenant_id: UUID | None
    credential: str  # what idempotency keys and rate limits are scoped to
    home_tenant_id: UUID | None = None  # where a platform token's `org_id` points
    is_suspended: bool = False

    @property
    def is_platform(self) -> bool:
        """Whether this is a platform credential."""
        return self.tenant_id is None

    def has(self, permission: Permission) -> bool:
        """Whether the principal holds ``permission``."""
        return permission in self.permissions


def digest_of(secret: str) -> str:
    """The stored form of an API key: SHA-256, in hex (the key has 256 random bits)."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def user_principal(claims: Claims) -> Principal:
    """The principal of a verified user token; the scope holds from here on.

    Raises Forbidden ``no_membership`` where its organization, active user or active membership
    does not exist here.
    """
    values = {"subject": claims.subject, "org_id": claims.org_id}
    found = statements.first(AUTHENTICATE_USER, values, whole=True)
    if found.is_superadmin:
        tenancy.enter(tenancy.PLATFORM)
        actor = Actor(f"platform:{claims.subject}")
        home = "" if found.tenant_id is None else f" {found.tenant_id}"
        return Principal(actor, ALL, None, actor.id + home, home_tenant_id=found.tenant_id)
    if found.user_id is None:
        raise Forbidden("No active membership in this organization.", code="no_membership")
    tenancy.enter(tenancy.Scope(found.tenant_id))
    role = Role(found.role)
    return Principal(
        Actor(str(found.user_id), role),
        ROLE_PERMISSIONS[role],
        found.tenant_id,
        f"user:{found.tenant_id}:{found.user_id}",
        is_suspended=not found.tenant_is_active,
    )


def key_principal(secret: str) -> Principal:
    """The principal of an API key; raises Unauthenticated for an unknown, expired or revoked one."""
    found = statements.first(AUTHENTICATE_KEY, {"digest": digest_of(secret)}, whole=True)
    if found is None:
        raise Unauthenticated
    granted = frozenset(Permission(name) for name in found.permissions)
    actor_id = f"key:{found.key_id}"
    if found.tenant_id is None:
        tenancy.enter(tenancy.PLATFORM)
        permissions = ALL if Permission.SUPERADMIN in granted else granted
        return Principal(Actor(actor_id), permissions, None, actor_id)
    tenancy.enter(tenancy.Scope(found.tenant_id))
    return Principal(
        Actor(actor_id, Role.ADMIN),
        granted & TENANT,
        found.tenant_id,
        actor_id,
        is_suspended=not found.tenant_is_active,
    )

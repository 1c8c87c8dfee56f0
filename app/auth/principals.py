"""From a credential to a principal: who asks, with which permissions, in which tenant.

Each look-up is one message to PostgreSQL, and may bring what the view reads first: the functions ``authenticate_user`` and
``authenticate_key`` find the credential's rows, in the tenant scope that they enter for that, and
answer in one row. Role and state are read each time, so a demotion, a deactivation or a
suspension counts on the very next request.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Text,
    Uuid,
    any_,
    bindparam,
    column,
    false,
    func,
    literal,
    or_,
)

from app.auth.keys import digest_of
from app.auth.permissions import ALL, ROLE_PERMISSIONS, TENANT, Permission, Role
from app.auth.tokens import Claims
from app.core.actors import Actor
from app.core.db import tenancy
from app.core.db.ahead import Ahead, find_asker
from app.core.errors import Forbidden, Unauthenticated

USER = func.authenticate_user(bindparam("subject"), bindparam("org_id")).table_valued(
    "is_superadmin", column("tenant_id", Uuid), "tenant_is_active", "user_id", "role", name="asker"
)
KEY = func.authenticate_key(bindparam("digest")).table_valued(
    "key_id",
    column("tenant_id", Uuid),
    column("permissions", ARRAY(Text)),
    "tenant_is_active",
    name="asker",
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


def user_principal(claims: Claims, wanted: Permission, ahead: Ahead | None) -> Principal:
    """The principal of a verified user token; the scope holds from here on.

    ``ahead`` is read where a tenant's role has the permission ``wanted``.

    Raises Forbidden ``no_membership`` where its organization, active user or active membership
    does not exist here.
    """
    values = {"subject": claims.subject, "org_id": claims.org_id}
    found = find_asker(USER, values, ahead, may=_roles_with(wanted))
    if found.is_superadmin:
        tenancy.enter(tenancy.PLATFORM)
        actor = Actor(f"platform:{claims.subject}")
        home = "" if found.tenant_id is None else f" {found.tenant_id}"
        return Principal(actor, ALL, None, actor.id + home, home_tenant_id=found.tenant_id)
    if found.user_id is None:
        raise Forbidden("No active membership in this organization.", code="no_membership")
    scope = tenancy.Scope(found.tenant_id)
    if ahead is not None and ahead.locks:
        tenancy.note(scope)
    else:
        tenancy.enter(scope)
    role = Role(found.role)
    user_id = str(found.user_id)
    return Principal(
        Actor(user_id, role),
        ROLE_PERMISSIONS[role],
        found.tenant_id,
        f"user:{found.tenant_id}:{user_id}",
        is_suspended=not found.tenant_is_active,
    )


def key_principal(secret: str, wanted: Permission, ahead: Ahead | None) -> Principal:
    """The principal of an API key; raises Unauthenticated for an unknown, expired or revoked one.

    ``ahead`` is read where a tenant's key has the permission ``wanted``, unless it locks: that the
    key was used is kept whatever the request is answered, so no transaction may undo it.
    """
    if ahead is not None and ahead.locks:
        ahead = None
    found = find_asker(KEY, {"digest": digest_of(secret)}, ahead, may=_keys_with(wanted))
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


@cache
def _roles_with(permission: Permission) -> ColumnElement[bool]:
    """Whether the user's role in an active tenant has ``permission``."""
    roles = (role for role, granted in ROLE_PERMISSIONS.items() if permission in granted)
    return USER.c.tenant_is_active & or_(false(), *(USER.c.role == role for role in roles))


@cache
def _keys_with(permission: Permission) -> ColumnElement[bool]:
    """Whether the key is one of an active tenant and has ``permission``."""
    return KEY.c.tenant_is_active & (literal(permission.value) == any_(KEY.c.permissions))

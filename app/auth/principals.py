"""The principal of a credential: the sender of a request, the permissions and the tenant.

The database functions ``authenticate_user`` and ``authenticate_key`` (``migrations/functions``) find
the credential's rows and set the tenant scope in one statement. They read role and state for each
request. So a new role, a deactivation or a suspension takes effect at the next request.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Text, Uuid, bindparam, column, func, select

from app.auth.permissions import ALL, ASSIGNABLE, ROLE_PERMISSIONS, TENANT, Permission, Role
from app.auth.tokens import Claims
from app.core.actors import Actor
from app.core.db import tenancy
from app.core.db.statements import Statement
from app.core.errors import Forbidden, PermissionDenied, Unauthenticated

AUTHENTICATE_USER = Statement(
    "auth.authenticate_user",
    select(
        func.authenticate_user(bindparam("subject"), bindparam("org_id")).table_valued(
            "is_superadmin",
            column("tenant_id", Uuid),
            "tenant_is_active",
            "user_id",
            "role",
            column("assigned", ARRAY(Text)),
        ),
    ),
)
AUTHENTICATE_KEY = Statement(
    "auth.authenticate_key",
    select(
        func.authenticate_key(bindparam("digest")).table_valued(
            "key_id",
            column("tenant_id", Uuid),
            column("permissions", ARRAY(Text)),
            "tenant_is_active",
            "role",
            column("assigned", ARRAY(Text)),
        ),
    ),
)
NONE: frozenset[Permission] = frozenset()


class NoMembership(Forbidden):
    """The token's organization is unknown, or its user or membership is unknown or not active."""

    code = "no_membership"
    detail = "No active membership in this organization."


@dataclass(frozen=True)
class Principal:
    """The sender of a request; ``tenant_id`` is None for a platform credential."""

    actor: Actor
    permissions: frozenset[Permission]
    tenant_id: UUID | None
    credential: str  # the scope of idempotency keys and rate limits
    home_tenant_id: UUID | None = None  # the tenant of a platform token's organization
    names_organization: bool = True  # whether the token names an organization, even of no tenant
    is_suspended: bool = False
    key_id: UUID | None = None  # None for a user

    @property
    def is_platform(self) -> bool:
        return self.tenant_id is None

    def has(self, permission: Permission) -> bool:
        return permission in self.permissions

    def check(self, permission: Permission) -> None:
        """Raise PermissionDenied without the permission."""
        if permission not in self.permissions:
            raise PermissionDenied(f"This needs the permission {permission}.")


def user_principal(claims: Claims) -> Principal:
    """The principal of a verified user token; sets the transaction's tenant scope.

    Raises NoMembership unless the organization exists and has an active user and membership.
    """
    found = AUTHENTICATE_USER.one(subject=claims.subject, org_id=claims.org_id)
    principal = principal_of_user(found, claims)
    tenancy.note(tenancy.Scope(principal.tenant_id))
    return principal


def key_principal(digest: str) -> Principal:
    """The principal of the API key with this digest; sets the transaction's tenant scope.

    Raises Unauthenticated for an unknown, expired or revoked key.
    """
    found: Any = AUTHENTICATE_KEY.first(digest=digest)
    principal = principal_of_key(found)
    tenancy.note(tenancy.Scope(principal.tenant_id))
    return principal


def operator_principal(actor: Actor) -> Principal:
    """The principal of an operator's command; sets the transaction's tenant scope."""
    tenancy.enter(tenancy.PLATFORM)
    return Principal(actor, ALL, None, actor.id, names_organization=False)


def principal_of_user(found: Any, claims: Claims) -> Principal:
    """The principal for the row that ``authenticate_user`` returned; raises NoMembership."""
    if found.is_superadmin:
        actor = Actor(f"platform:{claims.subject}")
        home = "" if found.tenant_id is None else f" {found.tenant_id}"
        return Principal(
            actor,
            ALL,
            None,
            actor.id + home,
            home_tenant_id=found.tenant_id,
            names_organization=claims.org_id is not None,
        )
    if found.user_id is None:
        raise NoMembership
    role = Role(found.role)
    user_id = str(found.user_id)
    return Principal(
        Actor(user_id, role),
        ROLE_PERMISSIONS[role] | assigned_permissions(found.assigned),
        found.tenant_id,
        f"user:{found.tenant_id}:{user_id}",
        is_suspended=not found.tenant_is_active,
    )


def principal_of_key(found: Any) -> Principal:
    """The principal for the row that ``authenticate_key`` returned; Unauthenticated for None."""
    if found is None:
        raise Unauthenticated(reason="key_invalid")
    granted = frozenset(Permission(name) for name in found.permissions)
    actor_id = f"key:{found.key_id}"
    if found.tenant_id is None:
        is_superadmin = Permission.SUPERADMIN in granted
        return Principal(
            Actor(actor_id, None if is_superadmin else Role.ADMIN, has_platform_key=True),
            ALL if is_superadmin else granted,
            None,
            actor_id,
            names_organization=False,
            key_id=found.key_id,
        )
    return Principal(
        Actor(actor_id, Role(found.role or Role.ADMIN)),
        granted & TENANT | assigned_permissions(found.assigned),
        found.tenant_id,
        actor_id,
        is_suspended=not found.tenant_is_active,
        key_id=found.key_id,
    )


def assigned_permissions(names: Collection[str] | None) -> frozenset[Permission]:
    """The permissions of assigned roles that count in requests.

    The others are permissions of products, and those that only the platform has or grants.
    """
    return frozenset(one for one in ASSIGNABLE if one in names) if names else NONE

"""Nobody gives what they do not have: the order of editors, and what each of them holds.

A change of roles or assignments first locks the tenant's row, and then reads the permissions of its
editor. So the second of two editors sees what the first has removed or given. A change of templates
or product permissions excludes all these changes for a moment.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from sqlalchemy import bindparam, func, or_, select

from app.auth.permissions import ASSIGNABLE, Role
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db.queries import id_or_none, visible_id
from app.core.db.statements import Statement
from app.core.errors import NotFound
from app.memberships.owners import RoleAboveOwn, locked_owners
from app.roles.models import AccessRole
from app.roles.role_graph import ALL_OF_PRODUCT, RoleGraph
from app.tenants.models import Tenant

P = TypeVar("P", bound=str)
Place = tuple[str, str]  # a resource's type and id
LOCK_KEY = 7_021_131  # of the advisory lock; changes of a tenant's roles share it

LOCK_PLATFORM = Statement("roles.lock_all", select(func.pg_advisory_xact_lock(LOCK_KEY)))
LOCK_TENANT = Statement(
    "roles.lock_tenant",
    select(
        func.pg_advisory_xact_lock_shared(LOCK_KEY), locked_owners(Tenant.id).label("owners")
    ).where(Tenant.id == bindparam("tenant_id")),
)
READ = Statement(
    "roles.read",
    select(AccessRole).where(
        or_(AccessRole.tenant_id == bindparam("tenant_id"), AccessRole.tenant_id.is_(None))
    ),
)
_HELD = (
    "held_role_keys({}, CAST(:until AS timestamptz), CAST(:types AS text[]), CAST(:ids AS text[]))"
)
FIND_MEMBER = Statement(
    "roles.find_member",
    f"SELECT m.role, {_HELD.format('m.tenant_id, m.id, m.user_id, NULL')} AS keys"  # noqa: S608 - no input
    " FROM memberships m WHERE m.tenant_id = :tenant_id AND m.user_id = :user_id AND m.is_active",
)
FIND_KEY = Statement(
    "roles.find_key",
    f"SELECT k.permissions, {_HELD.format('k.tenant_id, NULL, NULL, k.id')} AS keys"  # noqa: S608 - no input
    " FROM api_keys k WHERE k.id = :key_id",
)
"""The roles that assignments give for the tenant or for some places: ``until`` then, or always."""


def lock_tenant(tenant_id: UUID) -> Sequence[UUID]:
    """Wait for other editors of the tenant, then read which users are its active owners.

    Raises NotFound for an unknown tenant.
    """
    found = LOCK_TENANT.first(tenant_id=visible_id(tenant_id))
    if found is None:
        raise NotFound.of(Tenant)
    owners: Sequence[UUID] = found.owners
    return owners


def lock(tenant_id: UUID | None) -> RoleGraph:
    """Wait for other editors of the tenant's roles, or of the templates with None, then read them.

    Raises NotFound for an unknown tenant.
    """
    if tenant_id is None:
        LOCK_PLATFORM.execute()
    else:
        lock_tenant(tenant_id)
    return read(tenant_id)


def read(tenant_id: UUID | None) -> RoleGraph:
    """The roles that a tenant can use; with None the templates."""
    return RoleGraph(READ.all(tenant_id=tenant_id))


def check_may_give(
    role: AccessRole,
    roles: RoleGraph,
    tenant_id: UUID | None,
    *,
    actor: Actor,
    until: datetime | None = None,
) -> None:
    """Raise RoleAboveOwn if the role has a permission that the actor lacks, or is above their rank.

    Call it after :func:`lock`. The actor must have the permissions for as long as they are given:
    ``until`` then, or without an end.
    """
    if actor.role is None:
        return
    rank, held = _held(roles, tenant_id, actor, until)
    if Role(role.assignable_by).rank > rank:
        raise RoleAboveOwn(f"Only the role {role.assignable_by} or a higher one can assign this.")
    _check_has(held, roles.permissions_of(role.key))


def check_gains_nothing(
    tenant_id: UUID, before: Collection[Place], after: Collection[Place], *, actor: Actor
) -> None:
    """Raise RoleAboveOwn if the actor has more for the places ``after`` than ``before``."""
    if actor.role is None:
        return
    roles = read(tenant_id)
    _, held = _held(roles, tenant_id, actor, None, before)
    _, given = _held(roles, tenant_id, actor, utcnow(), after)
    _check_has(held, given)


def _check_has(held: frozenset[str], wanted: frozenset[str]) -> None:
    missing = wanted - held
    if ALL_OF_PRODUCT in held:
        missing &= ASSIGNABLE
    if missing:
        named = ", ".join(sorted(missing)[:10])
        raise RoleAboveOwn(f"You do not have these permissions: {named}.")


def held_until(
    until: datetime | None, tenant_id: UUID, *, actor: Actor, held: Collection[P]
) -> Collection[P]:
    """Those of the permissions ``held`` that the actor has until then, or without an end."""
    if actor.role is None:
        return held
    _, lasting = _held(read(tenant_id), tenant_id, actor, until)
    return [one for one in held if one in lasting]


def _held(
    roles: RoleGraph,
    tenant_id: UUID | None,
    actor: Actor,
    until: datetime | None,
    places: Collection[Place] = (),
) -> tuple[int, frozenset[str]]:
    """The actor's rank, and their permissions for the tenant and these places, ``until`` then."""
    where = {"types": [type_ for type_, _ in places], "ids": [id_ for _, id_ in places]}
    rank, keys, permissions = Role(str(actor.role)).rank, [str(actor.role)], frozenset[str]()
    if actor.id.startswith("key:"):
        key = FIND_KEY.one(key_id=UUID(actor.id.removeprefix("key:")), until=until, **where)
        keys, permissions = key.keys, frozenset(key.permissions)
        if actor.has_platform_key:
            permissions |= {ALL_OF_PRODUCT}
    elif (user_id := id_or_none(actor.id)) is not None:
        member = FIND_MEMBER.first(tenant_id=tenant_id, user_id=user_id, until=until, **where)
        keys = [] if member is None else [member.role, *member.keys]
        rank = Role.VIEWER.rank if member is None else Role(member.role).rank
    if Role.OWNER in keys:
        rank = Role.OWNER.rank
    return rank, permissions.union(*map(roles.permissions_of, keys))

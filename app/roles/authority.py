"""Nobody gives what they do not have: the order of editors, and what each of them holds.

Who changes roles or assignments first locks the tenant's row, and then reads what they hold. So of
two editors the second one sees what the first has taken away or given. Changes of templates and of
product permissions exclude all of these for a moment.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import ARRAY, ColumnElement, Text, and_, any_, bindparam, func, or_, select, tuple_

from app.auth.models import ApiKey
from app.auth.permissions import ASSIGNABLE, Role
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db.models import Moment
from app.core.db.queries import id_or_none, visible_id
from app.core.db.statements import Statement
from app.core.errors import NotFound
from app.memberships.models import Membership
from app.memberships.owners import RoleAboveOwn, locked_owners
from app.roles.models import AccessRole, RoleAssignment
from app.roles.role_graph import ALL_OF_PRODUCT, RoleGraph
from app.scim.models import ScimMember
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


_names = (bindparam(name, type_=ARRAY(Text)) for name in ("types", "ids"))
_places = func.unnest(*_names).table_valued("type", "id").render_derived()


def _assigned(*conditions: ColumnElement[bool]) -> ColumnElement[Any]:
    """A column: the keys of the roles that assignments give for the whole tenant, or for one of some
    places, ``until`` then.
    """
    keys = select(AccessRole.key).join(RoleAssignment, RoleAssignment.role_id == AccessRole.id)
    now = func.clock_timestamp()  # waiting for the lock may have taken a while
    end, until = RoleAssignment.expires_at, bindparam("until", type_=Moment)
    in_force = or_(end.is_(None), and_(end > now, end >= until))
    place = tuple_(RoleAssignment.resource_type, RoleAssignment.resource_id)
    whole_tenant, placed = (
        func.array(keys.where(where, in_force, *conditions).scalar_subquery())
        for where in (RoleAssignment.resource_type.is_(None), place.in_(select(_places)))
    )
    return whole_tenant.op("||")(placed)


_groups = (
    select(ScimMember.group_id)
    .where(ScimMember.tenant_id == Membership.tenant_id, ScimMember.user_id == Membership.user_id)
    .correlate(Membership)  # two levels above
)
FIND_MEMBER = Statement(
    "roles.find_member",
    select(
        Membership.role,
        _assigned(
            RoleAssignment.tenant_id == Membership.tenant_id,
            or_(
                RoleAssignment.membership_id == Membership.id,
                RoleAssignment.group_id == any_(func.array(_groups.scalar_subquery())),
            ),
        ).label("keys"),
    ).where(
        Membership.tenant_id == bindparam("tenant_id"),
        Membership.user_id == bindparam("user_id"),
        Membership.is_active,
    ),
)
FIND_KEY = Statement(
    "roles.find_key",
    select(
        ApiKey.permissions,
        _assigned(
            RoleAssignment.tenant_id == ApiKey.tenant_id, RoleAssignment.api_key_id == ApiKey.id
        ).label("keys"),
    ).where(ApiKey.id == bindparam("key_id")),
)


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

"""The rules for owners: who may change them, and that a tenant always has an active one.

An owner has the role ``owner`` by the membership or by an assignment of roles. An owner by
assignment counts as the tenant's last owner only if the assignment is to the membership itself, for
the whole tenant and without an end.

A change of a role, a membership, a user or an assignment can remove an owner. The statement that reads or locks
the changed row also locks the tenant's row and then reads the active owners
(``migrations/functions/lock_owners.sql``). So the second of two concurrent changes sees the result
of the first. A row that was read without a lock is written with
a check of its version.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, ColumnExpressionArgument, case, exists, false, func, null, or_

from app.audit.service import add_event
from app.auth.permissions import Role
from app.core.actors import Actor
from app.core.db.queries import Change, get_row
from app.core.db.writes import Writes
from app.core.errors import Conflict, Forbidden
from app.memberships.models import Membership
from app.roles.models import RoleAssignment
from app.tenants.models import Tenant
from app.users.models import User

log = logging.getLogger(__name__)


class RoleAboveOwn(Forbidden):
    code = "role_above_own"
    detail = "You cannot grant a role above your own."


class OwnerOnly(Forbidden):
    code = "owner_only"
    detail = "Only an owner can change an owner."


class LastOwner(Conflict):
    code = "last_owner"
    detail = "A tenant must have at least one active owner; make another member owner first."


def locked_owners(tenant_id: ColumnExpressionArgument[UUID]) -> ColumnElement[Any]:
    """A column: the ids of the tenant's active owners, once for each way in which they are owner.

    Reading it first locks the tenant's row.
    """
    return func.lock_owners(tenant_id)


def locked_owners_of(membership: type[Membership]) -> ColumnElement[Any]:
    """As :func:`locked_owners` for a membership with the role owner; else None, without a lock."""
    is_owners = membership.role == Role.OWNER.value
    return case((is_owners, locked_owners(membership.tenant_id)))


def is_assigned_owner(membership: type[Membership]) -> ColumnElement[bool]:
    """A column: whether an assignment, of the member or of a group, makes the member an owner."""
    ids = membership.tenant_id, membership.id, membership.user_id, null()
    assigned = func.assigned_roles(*ids).table_valued("role")
    has_any = exists().where(RoleAssignment.tenant_id == membership.tenant_id)
    return case((has_any, exists().where(assigned.c.role == Role.OWNER.value)), else_=false())


def is_owner(user: type[User]) -> ColumnElement[bool]:
    """A column: whether the user is an owner, active or not."""
    return exists().where(
        Membership.tenant_id == user.tenant_id,
        Membership.user_id == user.id,
        or_(Membership.role == Role.OWNER.value, is_assigned_owner(Membership)),
    )


def check_may_grant(role: str, *, actor: Actor) -> None:
    """Raise RoleAboveOwn if ``role`` is higher than the actor's own role."""
    if actor.role is not None and Role(role).rank > Role(actor.role).rank:
        raise RoleAboveOwn


def check_may_change_owner(*, actor: Actor) -> None:
    if actor.role is not None and actor.role != Role.OWNER:
        raise OwnerOnly


def check_one_remains(
    owners: Sequence[UUID] | None,
    leaving: UUID,
    *,
    tenant_id: UUID,
    actor: Actor,
    allow_ownerless: bool,
    in_one_way: bool = False,
    tenant: Tenant | None = None,
    into: Writes | None = None,
) -> list[UUID]:
    """Raise LastOwner if ``owners`` contains only the user ``leaving``; returns the others.

    ``in_one_way``: only the role or one assignment ends; the other may still make the user an owner.
    With ``allow_ownerless`` it raises nothing, but logs and audits ``tenant.ownerless``. ``tenant``
    is the tenant's row, if the caller has read it.
    """
    remaining = [owner for owner in owners or () if owner != leaving]
    ways = len(owners or ()) - len(remaining)
    if in_one_way:
        remaining += [leaving] * (ways - 1)
    if not ways or remaining:
        return remaining
    if not allow_ownerless:
        raise LastOwner
    log.warning("tenant_ownerless", extra={"tenant_id": str(tenant_id)})
    add_event(
        "tenant.ownerless",
        target_id=str(tenant_id),
        tenant_id=tenant_id,
        change=Change({"owners": [str(leaving)]}, {"owners": []}),
        actor=actor,
        data=(tenant or get_row(Tenant, tenant_id))._asdict(),
        into=into,
    )
    return remaining

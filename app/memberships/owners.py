"""The rules for owners: who may change them, and that a tenant always has an active one.

A change of a role, a membership or a user can remove an owner. The statement that reads or locks
the changed row also locks the tenant's row and then reads the active owners
(``migrations/functions/lock_owners.sql``). So the second of two concurrent changes sees the result
of the first. A row that was read without a lock is written with
a check of its version.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, ColumnExpressionArgument, case, exists, func

from app.audit.service import add_event
from app.auth.permissions import Role
from app.core.actors import Actor
from app.core.db.queries import Change, get_row
from app.core.db.writes import Writes
from app.core.errors import Conflict, Forbidden
from app.memberships.models import Membership
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
    """A column: the ids of the tenant's active owners. Reading it first locks the tenant's row."""
    return func.lock_owners(tenant_id)


def locked_owners_of(membership: type[Membership]) -> ColumnElement[Any]:
    """As :func:`locked_owners` for an owner's membership; None, without a lock, for other roles."""
    is_owners = membership.role == Role.OWNER.value
    return case((is_owners, locked_owners(membership.tenant_id)))


def is_owner(user: type[User]) -> ColumnElement[bool]:
    """A column: whether the user has an owner's membership, active or not."""
    return exists().where(
        Membership.tenant_id == user.tenant_id,
        Membership.user_id == user.id,
        Membership.role == Role.OWNER.value,
    )


def check_may_grant(role: str, *, actor: Actor) -> None:
    """Raise RoleAboveOwn if ``role`` is higher than the actor's own role."""
    if actor.role is not None and Role(role).rank > Role(actor.role).rank:
        raise RoleAboveOwn


def check_may_change_owner(*, actor: Actor) -> None:
    if actor.role is not None and actor.role != Role.OWNER:
        raise OwnerOnly


def check_one_remains(
    owners: Collection[UUID] | None,
    leaving: UUID,
    *,
    tenant_id: UUID,
    actor: Actor,
    allow_ownerless: bool,
    tenant: Tenant | None = None,
    into: Writes | None = None,
) -> None:
    """Raise LastOwner if the user ``leaving`` is the only one of ``owners``.

    With ``allow_ownerless`` it raises nothing, but logs and audits ``tenant.ownerless``. ``tenant``
    is the tenant's row, if the caller has read it.
    """
    if owners is None or leaving not in owners or len(owners) > 1:
        return
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

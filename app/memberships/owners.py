"""Owners: who may touch them, and that a tenant keeps one.

What can end an owner (a role, a membership, a user) locks the tenant's row first and reads the
active owners under that lock, in the statement that locks its own row. So of two changes at once
the second sees what the first one left.
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
from app.core.db.queries import Change
from app.core.errors import Conflict, Forbidden
from app.memberships.models import Membership
from app.users.models import User

log = logging.getLogger(__name__)


def locked_owners(tenant_id: ColumnExpressionArgument[UUID]) -> ColumnElement[Any]:
    """A column: the ids of the tenant's active owners, its row locked until the transaction ends."""
    return func.lock_owners(tenant_id)


def locked_owners_of(membership: type[Membership]) -> ColumnElement[Any]:
    """The same where a membership is an owner's; None for others, whose end ends no owner."""
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
    """Nobody grants a role above their own: Forbidden ``role_above_own``."""
    if actor.role is not None and Role(role).rank > Role(actor.role).rank:
        raise Forbidden("Nobody grants a role above their own.", code="role_above_own")


def check_may_touch_owner(*, actor: Actor) -> None:
    """Only an owner, or who stands above the tenant, touches an owner: Forbidden ``owner_only``."""
    if actor.role is not None and actor.role != Role.OWNER:
        raise Forbidden("Only an owner changes an owner.", code="owner_only")


def check_one_remains(
    owners: Collection[UUID] | None,
    leaving: UUID,
    *,
    tenant_id: UUID,
    actor: Actor,
    allow_ownerless: bool,
) -> None:
    """Refuse that the user ``leaving`` ends as owner where no other of ``owners`` remains.

    Raises Conflict ``last_owner``; with ``allow_ownerless`` the change goes on and is logged and
    audited as ``tenant.ownerless``.
    """
    if owners is None or leaving not in owners or len(owners) > 1:
        return
    if not allow_ownerless:
        raise Conflict("A tenant keeps at least one active owner.", code="last_owner")
    log.warning("tenant_ownerless", extra={"tenant_id": str(tenant_id)})
    add_event(
        "tenant.ownerless",
        target_type="tenant",
        target_id=str(tenant_id),
        tenant_id=tenant_id,
        change=Change({"owners": [str(leaving)]}, {"owners": []}),
        actor=actor,
    )

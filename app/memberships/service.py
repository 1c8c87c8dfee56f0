"""Memberships: create, find, change role or state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from sqlalchemy import bindparam, case, select

from app.audit.service import record, record_creation
from app.auth.permissions import Role
from app.core.actors import Actor
from app.core.db import queries
from app.core.db.bulk import update_rows
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import check_precondition
from app.core.db.statements import Statement
from app.core.db.writes import Writes, writes
from app.core.errors import Conflict
from app.core.json_text import Json
from app.memberships import directories, owners, seats
from app.memberships.models import Membership
from app.search.filters import take_q
from app.search.models import EntityType
from app.users.models import User

LOCKED_OWNERS = {
    True: owners.locked_owners(Membership.tenant_id),  # an assignment may have just been made
    False: owners.locked_owners_of(Membership),
}
IS_ASSIGNED_OWNER = owners.is_assigned_owner(Membership)
HAS_MAPPED_ROLE = directories.has_mapped_role(Membership.tenant_id, Membership.user_id)
SEAT_LIMIT = case(
    (~Membership.is_active, seats.limit_of(Membership.tenant_id, member=Membership.user_id))
)
GET_USER_WITH_SEATS = Statement(
    "users.get_with_seats",
    select(User, seats.limit_of(User.tenant_id, member=User.id).label("seat_limit")).where(
        User.tenant_id == bindparam("tenant_id"), User.id == bindparam("id")
    ),
)


class MembershipExists(Conflict):
    code = "membership_exists"
    detail = "This user already is a member; change that membership."


class IdpMembershipIdTaken(Conflict):
    code = "idp_membership_id_taken"
    detail = "Another membership of this tenant has this idp_membership_id."


CONFLICTS = {
    "uq_memberships_tenant_id_user_id": MembershipExists,
    "uq_memberships_tenant_id_idp_membership_id": IdpMembershipIdTaken,
}


def get_membership(membership_id: UUID | str) -> Membership:
    return queries.get_row(Membership, membership_id)


def list_memberships(
    paging: Paging = FIRST_PAGE, *, tenant_id: UUID | None = None, **equal: object
) -> Page:
    """One page of a tenant's memberships (of all, for the platform) with these values of columns.

    ``q`` has words of the user, see :mod:`app.search.filters`.
    """
    found = take_q(equal, EntityType.USER, "memberships.tenant_id, memberships.user_id", tenant_id)
    return paginate(Membership, paging, *found, equal=equal, tenant_id=tenant_id, has_one_plan=True)


def create(tenant_id: UUID, values: Mapping[str, object], *, actor: Actor) -> Membership:
    """Create an active membership; ``values`` may have an ``idp_membership_id``.

    Raises NotFound for a user that the tenant does not have, RoleAboveOwn, MembershipExists,
    IdpMembershipIdTaken or SeatLimit.
    """
    found = GET_USER_WITH_SEATS.get("user", tenant_id=tenant_id, id=values["user_id"])
    membership = create_for(found.User, values, actor=actor)
    seats.take(found.seat_limit, tenant_id, actor=actor)
    return membership


def create_for(
    user: User, values: Mapping[str, Json], *, actor: Actor, into: Writes | None = None
) -> Membership:
    """Create a membership as :func:`create` does, for a user that has been read already.

    The limit of seats does not apply.
    """
    owners.check_may_grant(values["role"], actor=actor)
    values = {
        **values,
        "role": str(values["role"]),
        "user_id": user.id,
        "tenant_id": user.tenant_id,
        "idp_org_id": user.idp_org_id,
        **actor.authorship,
    }
    with writes(into) as w:
        membership = w.insert(Membership, values, conflicts=CONFLICTS)
        record_creation("membership.created", membership, actor=actor, into=w)
    return membership


def set_role(membership_id: UUID | str, role: Role, *, actor: Actor) -> Membership:
    """Give the member another role; the same role records nothing.

    Raises OwnerOnly, RoleAboveOwn, LastOwner, or ManagedByDirectory where a group gives the role.
    """
    return _change(membership_id, {"role": role.value}, "membership.role_changed", actor)


def set_active(membership_id: UUID | str, is_active: bool, *, actor: Actor) -> Membership:
    """Activate or end the membership; the same state records nothing.

    Raises OwnerOnly, LastOwner, SeatLimit, or ManagedByDirectory for a membership that a directory
    manages.
    """
    action = "membership.activated" if is_active else "membership.deactivated"
    return _change(membership_id, {"is_active": is_active}, action, actor)


def update_many(
    changes: Sequence[tuple[Membership, Mapping[str, object]]], *, actor: Actor, into: Writes
) -> None:
    """Change memberships that this transaction has read, of any tenants, by one statement.

    The caller has applied the rules for owners and seats. Raises IdpMembershipIdTaken, and
    RowChanged if another transaction has changed one of the memberships since it was read.
    """
    changed = update_rows(Membership, changes, actor_id=actor.id, conflicts=CONFLICTS)
    for membership, change in changed:
        record("membership.updated", membership, change, actor=actor, into=into)


def _change(
    membership_id: UUID | str, values: Mapping[str, Json], action: str, actor: Actor
) -> Membership:
    further = [SEAT_LIMIT] if values.get("is_active") else []
    deactivates = values.get("is_active") is False
    columns = LOCKED_OWNERS[deactivates], HAS_MAPPED_ROLE, IS_ASSIGNED_OWNER, *further
    membership, found = queries.lock_with(Membership, membership_id, *columns)
    active_owners, has_mapped_role, is_assigned_owner, *limits = found
    if membership.role == Role.OWNER or is_assigned_owner:
        owners.check_may_change_owner(actor=actor)
    owners.check_may_grant(values.get("role", Role.VIEWER), actor=actor)
    check_precondition(membership)
    is_demoted = membership.role == Role.OWNER != values.get("role", Role.OWNER)
    if deactivates or is_demoted:
        owners.check_one_remains(
            active_owners,
            membership.user_id,
            tenant_id=membership.tenant_id,
            actor=actor,
            allow_ownerless=False,
            in_one_way=not deactivates,
        )
    membership, changed = queries.update_row(Membership, membership, values, actor_id=actor.id)
    if changed is not None:
        if has_mapped_role is False and "role" in values:
            # What was read may be older than the lock, which a change of groups may have held.
            has_mapped_role = directories.gives_role(membership.user_id)
        is_managed = has_mapped_role if "role" in values else has_mapped_role is not None
        directories.check_may_change(is_managed=is_managed, actor=actor)
        with writes() as w:
            for limit in limits:
                seats.take(limit, membership.tenant_id, actor=actor, into=w)
            record(action, membership, changed, actor=actor, into=w)
    return membership

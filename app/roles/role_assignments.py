"""Assignments: roles in addition to those of memberships, for a resource or until a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, delete, select

from app.audit.service import add_event
from app.auth.models import ApiKey
from app.auth.permissions import Role
from app.core.actors import Actor
from app.core.clock import check_future, rfc3339, utcnow
from app.core.db import queries
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import Change
from app.core.db.statements import Statement
from app.core.db.tenancy import current_scope
from app.core.db.writes import Writes, insert_row, writes
from app.core.errors import Conflict, Invalid, NotFound, value_error
from app.extensions import Model
from app.memberships import owners
from app.memberships.models import Membership
from app.roles import authority
from app.roles.models import AccessResource, AccessRole, RoleAssignment
from app.scim.models import ScimGroup

TARGETS: dict[str, type[Model]] = {
    "membership_id": Membership,
    "group_id": ScimGroup,
    "api_key_id": ApiKey,
}
"""Column -> the model of the row that has the role."""
ROLE_KEY = (
    select(AccessRole.key)
    .where(AccessRole.id == RoleAssignment.role_id)
    .scalar_subquery()
    .label("role")
)

COUNT_OF_ROLE = Statement(
    "role_assignments.count_of_role",
    "SELECT count(*) FROM (SELECT FROM role_assignments WHERE role_id = :role_id LIMIT :limit) a",
)
DELETE_SHORTER = Statement(
    "role_assignments.delete_shorter",
    """
    DELETE FROM role_assignments a USING role_assignments other
    WHERE a.role_id = :role_id AND other.role_id = :other_id AND other.tenant_id = a.tenant_id
        AND (other.membership_id = a.membership_id OR other.group_id = a.group_id
            OR other.api_key_id = a.api_key_id)
        AND a.resource_type IS NOT DISTINCT FROM other.resource_type
        AND a.resource_id IS NOT DISTINCT FROM other.resource_id
        AND (other.expires_at IS NULL OR a.expires_at <= other.expires_at)
    RETURNING a.*
    """,
)
"""Deletes assignments of one role where the same target has another role for at least as long."""
REPLACE = Statement(
    "role_assignments.replace_role",
    """
    UPDATE role_assignments SET role_id = :new_id, version = version + 1, updated_at = :now,
        updated_by_user_id = :actor_id
    WHERE role_id = :old_id RETURNING *
    """,
)
TAKE_ENDED = Statement(
    "role_assignments.take_ended",
    """
    DELETE FROM role_assignments a USING ended_role_assignments(:limit) e
    WHERE a.tenant_id = e.tenant_id AND a.id = e.id
    RETURNING a.*, e.action, (SELECT key FROM roles r WHERE r.id = a.role_id) AS role
    """,
)
_groups = select(ScimGroup.id).where(
    ScimGroup.tenant_id == bindparam("tenant_id"), ScimGroup.connection_id == bindparam("id")
)
TAKE = {
    name: Statement(
        f"role_assignments.take_by_{name}",
        delete(RoleAssignment)
        .where(
            RoleAssignment.tenant_id == bindparam("tenant_id"),
            RoleAssignment.id.in_(
                select(RoleAssignment.id)
                .where(RoleAssignment.tenant_id == bindparam("tenant_id"), condition)
                .limit(bindparam("limit"))
            ),
        )
        .returning(*RoleAssignment.__table__.c, ROLE_KEY),
    )
    for name, condition in {
        "group_id": RoleAssignment.group_id == bindparam("id"),
        "api_key_id": RoleAssignment.api_key_id == bindparam("id"),
        "connection_id": RoleAssignment.group_id.in_(_groups),
    }.items()
}
"""Delete assignments of a target, or of the groups of a SCIM connection."""


AGAIN = ("id", "created_at", "created_by_user_id", "updated_at", "version")  # of one that returns
MAX_ENDED = 500  # assignments that a request deletes with their target
NO_END = "an owner of the whole tenant has no end, as owners can make owners"


class RoleAssigned(Conflict):
    code = "role_assigned"
    detail = "The same target has this role already, for the same resource."


CONFLICTS = {f"uq_role_assignments_{name}": RoleAssigned for name in TARGETS}


def get_assignment(assignment_id: UUID | str) -> SimpleNamespace:
    row, (role_key,) = queries.get_with(RoleAssignment, assignment_id, ROLE_KEY)
    return shown(row, role_key)


def list_assignments(
    paging: Paging = FIRST_PAGE,
    *,
    tenant_id: UUID | None = None,
    role: str | None = None,
    **equal: object,
) -> Page:
    """One page of a tenant's assignments (of all, for the platform) with these values of columns.

    ``role`` is the key of a role of the tenant, or of a template.
    """
    if role is not None:
        known = authority.read(tenant_id or current_scope().tenant_id).by_key.get(role)
        if known is None:
            return Page([], None)
        equal["role_id"] = known.id
    page = paginate(RoleAssignment, paging, equal=equal, tenant_id=tenant_id, further=(ROLE_KEY,))
    return replace(page, items=[shown(row, row.role) for row in page.items])


def create(
    tenant_id: UUID, values: Mapping[str, Any], *, source: str = "api", actor: Actor
) -> SimpleNamespace:
    """Give a role to a membership, to the members of a group, or to an API key.

    ``values`` has one of :data:`TARGETS`, ``role`` (a key), and may have ``resource`` and
    ``expires_at``. Raises NotFound for what the tenant does not have, RoleAboveOwn, RoleAssigned,
    and Invalid for an end in the past, and for an end of an owner's assignment for the whole
    tenant.
    """
    check_future(values.get("expires_at"), ("body", "expires_at"))
    roles = authority.lock(tenant_id)
    role = roles.by_key.get(values["role"])
    if role is None:
        raise NotFound.of(AccessRole)
    target = {name: values[name] for name in TARGETS if values.get(name) is not None}
    for name, target_id in target.items():
        found = queries.find_row(TARGETS[name], tenant_id=tenant_id, id=target_id)
        if found is None or getattr(found, "revoked_at", None) is not None:
            raise NotFound.of(name.removesuffix("_id"))
    place = values.get("resource")
    if place and not queries.find_row(AccessResource, tenant_id=tenant_id, **place):
        raise NotFound.of(AccessResource)
    until = values.get("expires_at")
    if until is not None and role.key == Role.OWNER and place is None:
        raise Invalid(value_error(["body", "expires_at"], NO_END, rfc3339(until)))
    authority.check_may_give(role, roles, tenant_id, actor=actor, until=until)
    row = insert_row(
        RoleAssignment,
        {
            **actor.authorship,
            **{name: values[name] for name in AGAIN if name in values},
            **target,
            "tenant_id": tenant_id,
            "role_id": role.id,
            "resource_type": place and place["type"],
            "resource_id": place and place["id"],
            "expires_at": until,
            "source": source,
        },
        conflicts=CONFLICTS,
    )
    record("role_assignment.created", row, role.key, actor=actor)
    return shown(row, role.key)


def remove(assignment_id: UUID | str, *, actor: Actor) -> None:
    """Take a role away. Raises NotFound; OwnerOnly and LastOwner for that of an owner."""
    tenant_id = queries.get_row(RoleAssignment, assignment_id).tenant_id
    active_owners = authority.lock_tenant(tenant_id)
    row = queries.lock_row(RoleAssignment, assignment_id)
    role = queries.get_row(AccessRole, row.role_id)
    if role.key == Role.OWNER and row.resource_type is None:
        owners.check_may_change_owner(actor=actor)
        membership = queries.find_row(Membership, tenant_id=tenant_id, id=row.membership_id)
        if membership is not None and membership.role != Role.OWNER:
            owners.check_one_remains(
                active_owners,
                membership.user_id,
                tenant_id=tenant_id,
                actor=actor,
                allow_ownerless=False,
            )
    queries.delete_row(RoleAssignment, row)
    record("role_assignment.deleted", row, role.key, actor=actor)


def replace_role(old: AccessRole, new: AccessRole, *, actor: Actor) -> None:
    """Give another role to all holders of ``old``, whom the caller has locked and counted.

    Where a holder has both roles already, the assignment that lasts longer remains.
    """
    shorter = DELETE_SHORTER.all(role_id=old.id, other_id=new.id)
    of_new = DELETE_SHORTER.all(role_id=new.id, other_id=old.id)
    moved = REPLACE.all(old_id=old.id, new_id=new.id, now=utcnow(), actor_id=actor.id)
    with writes() as w:
        for rows, key in ((shorter, old.key), (of_new, new.key)):
            for row in rows:
                record("role_assignment.deleted", row, key, actor=actor, into=w)
        change = Change({"role": old.key, "role_id": old.id}, {"role": new.key, "role_id": new.id})
        for row in moved:
            record("role_assignment.updated", row, new.key, change, actor=actor, into=w)


def remove_ended(limit: int, *, actor: Actor) -> int:
    """Delete assignments that have no effect any more; returns their number."""
    rows = TAKE_ENDED.all(limit=limit)
    with writes() as w:
        for row in rows:
            record(row.action, row, row.role, actor=actor, into=w)
    return len(rows)


def end(target: str, target_id: UUID, *, tenant_id: UUID, actor: Actor) -> None:
    """Delete assignments of what ends in this transaction: one of :data:`TAKE`, such as ``group_id``.

    They have no effect any more. What is beyond :data:`MAX_ENDED` is left to :func:`remove_ended`.
    """
    rows = TAKE[target].all(tenant_id=tenant_id, id=target_id, limit=MAX_ENDED)
    with writes() as w:
        for row in rows:
            record("role_assignment.deleted", row, row.role, actor=actor, into=w)


def record(
    action: str,
    row: Any,
    role_key: str,
    change: Change | None = None,
    *,
    actor: Actor,
    into: Writes | None = None,
) -> None:
    """Add the audit row and the event of an assignment; of a deleted one with what it was."""
    data = vars(shown(row, role_key))
    if change is None:
        is_new = action.endswith(".created")
        change = Change({}, data) if is_new else Change(data, {})
    add_event(
        action,
        target_id=str(row.id),
        tenant_id=row.tenant_id,
        change=change,
        actor=actor,
        data=data,
        into=into,
    )


def shown(row: Any, role_key: str) -> SimpleNamespace:
    """The assignment as answers have it, with the key of its role."""
    place = row.resource_type and {"type": row.resource_type, "id": row.resource_id}
    names = RoleAssignment.__table__.columns.keys()
    values = {name: getattr(row, name) for name in names}
    return SimpleNamespace(**values, role=role_key, resource=place)

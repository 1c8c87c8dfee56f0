"""Lines about roles, resources and assignments: each is applied by the service, with its rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from app.auth.permissions import Role
from app.core.actors import Actor
from app.core.db.queries import find_row
from app.core.db.statements import Statement
from app.imports.line_schemas import Kind
from app.imports.outcomes import Outcome
from app.imports.rows import unknown
from app.memberships.models import Membership
from app.roles import access_resources, role_assignments, service
from app.roles.models import AccessResource, AccessRole
from app.users.emails import email_key
from app.users.models import User

FIND_ASSIGNMENT = Statement(
    "imports.find_assignment",
    """
    SELECT a.id, a.expires_at FROM role_assignments a JOIN roles r ON r.id = a.role_id
    WHERE a.tenant_id = :tenant_id AND a.membership_id = :membership_id AND r.key = :role
        AND (a.resource_type, a.resource_id) IS NOT DISTINCT FROM (:type, :id)
    """,
)


def _apply_role(tenant_id: UUID, values: Mapping[str, Any], actor: Actor) -> Outcome:
    known = find_row(AccessRole, tenant_id=tenant_id, key=values["key"])
    if known is None:
        given = {"name": values["key"], "permissions": [], "inherits": None, **values}
        service.create(tenant_id, {"assignable_by": Role.ADMIN, **given}, actor=actor)
    return _outcome(known, known and service.update(known.id, values, actor=actor))


def _apply_resource(tenant_id: UUID, values: Mapping[str, Any], actor: Actor) -> Outcome:
    type_, resource_id = values["resource"]["type"], values["resource"]["id"]
    known = find_row(AccessResource, tenant_id=tenant_id, type=type_, id=resource_id)
    before = vars(access_resources.shown(known)) if known else {"parent": None, "attributes": {}}
    after = {**before, **values}
    return _outcome(known, access_resources.put(tenant_id, type_, resource_id, after, actor=actor))


def _apply_assignment(tenant_id: UUID, values: Mapping[str, Any], actor: Actor) -> Outcome:
    """With another end a new assignment replaces the existing assignment."""
    field = "idp_user_id" if values.get("idp_user_id") else "email"
    by_email = {"email_key": email_key(values.get("email", "")), "is_active": True}
    by = by_email if field == "email" else {field: values[field]}
    user = find_row(User, tenant_id=tenant_id, **by)
    member = user and find_row(Membership, tenant_id=tenant_id, user_id=user.id)
    if member is None:
        raise unknown(field, "no member of the tenant has this", values[field])
    key = {"tenant_id": tenant_id, "membership_id": member.id, "role": values["role"]}
    place = values.get("resource") or {"type": None, "id": None}
    known = FIND_ASSIGNMENT.first(**key, **place)
    if known is not None:
        if values.get("expires_at", known.expires_at) == known.expires_at:
            return Outcome.UNCHANGED
        role_assignments.remove(known.id, actor=actor)
    role_assignments.create(tenant_id, {**values, "membership_id": member.id}, actor=actor)
    return Outcome.UPDATED if known else Outcome.CREATED


def _outcome(before: Any, after: Any) -> Outcome:
    if before is None:
        return Outcome.CREATED
    return Outcome.UNCHANGED if after.version == before.version else Outcome.UPDATED


Step = Callable[[UUID, Mapping[str, Any], Actor], Outcome]
STEPS: Mapping[Kind, Step] = {
    Kind.ROLE: _apply_role,
    Kind.RESOURCE: _apply_resource,
    Kind.ROLE_ASSIGNMENT: _apply_assignment,
}

"""Assignments that follow what the identity provider says about the roles of members."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from uuid import UUID

from sqlalchemy import ARRAY, Text, Uuid, and_, any_, bindparam, func, or_, select

from app.core.actors import SYSTEM_IDP
from app.core.db import queries
from app.core.db.statements import Statement
from app.core.db.writes import Writes
from app.roles.models import AccessRole, RoleAssignment
from app.roles.role_assignments import record

SOURCE = "idp"
_ids = (bindparam(name, type_=ARRAY(Uuid)) for name in ("tenant_ids", "membership_ids"))
_members = func.unnest(*_ids).table_valued("tenant_id", "id").render_derived()
_usable = or_(AccessRole.tenant_id == _members.c.tenant_id, AccessRole.tenant_id.is_(None))
_for_the_tenant = and_(
    RoleAssignment.tenant_id == _members.c.tenant_id,
    RoleAssignment.membership_id == _members.c.id,
    RoleAssignment.role_id == AccessRole.id,
    RoleAssignment.resource_type.is_(None),
)
_is_named = AccessRole.key == any_(bindparam("keys", type_=ARRAY(Text)))
FIND = Statement(
    "role_assignments.find_of_provider",
    select(_members.c.tenant_id, _members.c.id, AccessRole, RoleAssignment)
    .join_from(_members, AccessRole, _usable)
    .outerjoin(RoleAssignment, _for_the_tenant)
    .where(or_(_is_named, RoleAssignment.source == SOURCE)),
)


def follow(wanted: Mapping[tuple[UUID, UUID], AbstractSet[str]], *, into: Writes) -> None:
    """Give memberships, by tenant and id, the roles with these keys for the whole tenant.

    Only assignments with the source ``idp`` are removed. A key that no role of the tenant and no
    template has is ignored. The caller leaves the five roles of memberships out.
    """
    if not wanted:
        return
    found = FIND.all(
        tenant_ids=[tenant_id for tenant_id, _ in wanted],
        membership_ids=[membership_id for _, membership_id in wanted],
        keys=list(set[str]().union(*wanted.values())),
    )
    for tenant_id, membership_id, role, row in found:
        is_wanted = role.key in wanted[tenant_id, membership_id]
        if is_wanted and row.id is None:
            place = {"tenant_id": tenant_id, "membership_id": membership_id, "role_id": role.id}
            row = into.insert(RoleAssignment, {**place, **SYSTEM_IDP.authorship, "source": SOURCE})
            record("role_assignment.created", row, role.key, actor=SYSTEM_IDP, into=into)
        elif not is_wanted and row.source == SOURCE:
            queries.delete_row(RoleAssignment, row)
            record("role_assignment.deleted", row, role.key, actor=SYSTEM_IDP, into=into)

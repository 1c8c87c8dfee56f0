"""The groups of a connection, and the people and roles of their members."""

from __future__ import annotations

from typing import Protocol

from sqlalchemy import (
    ARRAY,
    Uuid,
    any_,
    bindparam,
    delete,
    func,
    literal,
    select,
    union_all,
    update,
)

from app.core.db.statements import Statement
from app.memberships import owners
from app.memberships.models import Membership
from app.scim.models import ScimGroup, ScimMember, ScimUser

_of_connection = (
    ScimGroup.tenant_id == bindparam("tenant_id"),
    ScimGroup.connection_id == bindparam("connection_id"),
)
_members = (
    select(
        func.json_agg(
            func.json_build_array(
                ScimMember.member_id, ScimMember.nested_id.is_not(None), ScimMember.display
            )
        )
    )
    .where(ScimMember.tenant_id == ScimGroup.tenant_id, ScimMember.group_id == ScimGroup.id)
    .scalar_subquery()
)
WITHOUT_MEMBERS = select(ScimGroup, literal(None).label("members")).where(*_of_connection)
WITH_MEMBERS = select(ScimGroup, _members.label("members")).where(*_of_connection)
GET = {
    True: Statement("scim_groups.get", WITH_MEMBERS.where(ScimGroup.id == bindparam("id"))),
    False: Statement(
        "scim_groups.get_without_members", WITHOUT_MEMBERS.where(ScimGroup.id == bindparam("id"))
    ),
}
_ids = any_(bindparam("ids", type_=ARRAY(Uuid)))
FIND_KNOWN = Statement(
    "scim_members.find_known",
    union_all(
        select(ScimUser.id, literal(False).label("is_group")).where(
            ScimUser.tenant_id == bindparam("tenant_id"),
            ScimUser.connection_id == bindparam("connection_id"),
            ScimUser.deleted_at.is_(None),
            ScimUser.id == _ids,
        ),
        select(ScimGroup.id, literal(True)).where(*_of_connection, ScimGroup.id == _ids),
    ),
)
# The roles of people in several groups are right only if what decides them is read after this lock.
# The order prevents deadlocks; a foreign key to a person does not wait for it.
LOCK = Statement(
    "scim_users.lock_members",
    select(ScimUser.id, owners.locked_owners_of(Membership))
    .join(
        Membership,
        (Membership.tenant_id == ScimUser.tenant_id) & (Membership.user_id == ScimUser.id),
    )
    .where(ScimUser.tenant_id == bindparam("tenant_id"), ScimUser.id == _ids)
    .order_by(ScimUser.id)
    .with_for_update(key_share=True, of=[ScimUser, Membership]),
)
REMOVE = Statement(
    "scim_members.remove",
    delete(ScimMember).where(
        ScimMember.tenant_id == bindparam("tenant_id"),
        ScimMember.group_id == bindparam("group_id"),
        ScimMember.member_id == _ids,
    ),
)
# The memberships of these people, each with the groups that they are in.
FIND_ROLES = Statement(
    "scim_members.find_roles",
    select(
        Membership.id,
        Membership.role,
        Membership.user_id,
        ScimUser.has_mapped_role,
        select(
            func.json_agg(
                func.json_build_array(
                    ScimGroup.id, ScimGroup.display_name_key, ScimGroup.external_id
                )
            )
        )
        .select_from(ScimMember)
        .join(
            ScimGroup,
            (ScimGroup.tenant_id == ScimMember.tenant_id) & (ScimGroup.id == ScimMember.group_id),
        )
        .where(
            ScimMember.tenant_id == Membership.tenant_id, ScimMember.user_id == Membership.user_id
        )
        .scalar_subquery()
        .label("groups"),
    )
    .join(
        ScimUser, (ScimUser.tenant_id == Membership.tenant_id) & (ScimUser.id == Membership.user_id)
    )
    .where(Membership.tenant_id == bindparam("tenant_id"), Membership.user_id == _ids)
    .order_by(Membership.id),
)
MARK = Statement(
    "scim_users.mark_mapped_roles",
    update(ScimUser)
    .where(ScimUser.tenant_id == bindparam("of_tenant_id"), ScimUser.id == _ids)
    .values(has_mapped_role=bindparam("is_mapped")),
)


class GroupRow(Protocol):
    """A row of :data:`WITH_MEMBERS`: of each member the id, whether it is a group, and its name."""

    ScimGroup: ScimGroup
    members: list[tuple[str, bool, str]] | None

"""The groups of a connection, and the roles that they give their members."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from sqlalchemy import ARRAY, Uuid, any_, bindparam, delete, func, literal, select, union_all
from sqlalchemy import update as update_of

from app.auth.permissions import Role
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries
from app.core.db.statements import Statement
from app.core.db.transactions import RowChanged
from app.core.db.writes import insert_row, writes
from app.core.errors import Conflict
from app.memberships import service as memberships
from app.memberships.models import Membership
from app.scim.errors import invalid_value
from app.scim.models import Connection, ScimGroup, ScimMember, ScimUser
from app.scim.people import check_length
from app.users.emails import email_key

MAX_MEMBERS = 10_000  # of a group

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
    update_of(ScimUser)
    .where(ScimUser.tenant_id == bindparam("of_tenant_id"), ScimUser.id == _ids)
    .values(has_mapped_role=~ScimUser.has_mapped_role),
)


class GroupRow(Protocol):
    """A row of :data:`WITH_MEMBERS`: of each member the id, whether it is a group, and its name."""

    ScimGroup: ScimGroup
    members: list[tuple[str, bool, str]] | None


class GroupExists(Conflict):
    """Another group has the name."""

    scim_type = "uniqueness"
    detail = "Another group of this directory has this displayName."


CONFLICTS = {"uq_scim_groups_tenant_id_connection_id_display_name_key": GroupExists}


@dataclass(frozen=True)
class Group:
    """What a directory says about a group; ``members`` are ids, each with a name to display."""

    display_name: str
    external_id: str
    members: Mapping[UUID, str]

    def check(self) -> None:
        """Raise ScimError for a name that is empty or too long, and for too many members."""
        if not self.display_name.strip():
            raise invalid_value("displayName must not be empty.")
        check_length(displayName=self.display_name, externalId=self.external_id)
        if len(self.members) > MAX_MEMBERS:
            raise invalid_value(f"A group has at most {MAX_MEMBERS} members.")


def create(connection: Connection, group: Group, *, actor: Actor) -> UUID:
    """Create a group and give its members their role; returns its id.

    Members that the directory has not provisioned, or has deleted, are left out. Raises
    GroupExists, ScimError and the errors of :func:`app.memberships.service.set_role`.
    """
    group.check()
    values = {"tenant_id": connection.tenant_id, "connection_id": connection.id, **_stored(group)}
    row = insert_row(ScimGroup, values, conflicts=CONFLICTS)
    _add(connection, row, group.members)
    if _role_of(connection, row) is not None:
        _apply_roles(connection, group.members.keys(), actor)
    return row.id


def update(connection: Connection, found: ScimGroup, group: Group, *, actor: Actor) -> None:
    """Make a group what the directory says now; the roles of its members follow.

    Raises the errors of :func:`create`. Raises RowChanged if another transaction has changed the
    group since ``found`` was read.
    """
    group.check()
    before = _lock(found)
    old = _members_of(connection, before)
    added = dict(group.members.items() - old.items())
    removed = dict(old.items() - group.members.items())
    values = _stored(group)
    if added or removed:
        values["updated_at"] = utcnow()  # also a change of members is a new version
    row, _ = queries.update_row(ScimGroup, before, values, conflicts=CONFLICTS)
    if removed:
        REMOVE.execute(tenant_id=row.tenant_id, group_id=row.id, ids=list(removed))
    _add(connection, row, added)
    roles = {_role_of(connection, before), _role_of(connection, row)}
    if roles != {None}:
        is_same = len(roles) == 1
        _apply_roles(connection, {*added, *removed} if is_same else {*old, *group.members}, actor)


def remove(connection: Connection, found: ScimGroup, *, actor: Actor) -> None:
    """Delete a group; its members lose the role that it gave them. Raises as :func:`update`."""
    row = _lock(found)
    members = _members_of(connection, row)
    queries.delete_row(ScimGroup, row)
    if _role_of(connection, row) is not None:
        _apply_roles(connection, members.keys(), actor)


def _lock(found: ScimGroup) -> ScimGroup:
    row = queries.lock_with(ScimGroup, found.id)[0]
    if row.version != found.version:
        raise RowChanged("scim_groups")
    return row


def _stored(group: Group) -> dict[str, object]:
    return {
        "display_name": group.display_name,
        "display_name_key": email_key(group.display_name),
        "external_id": group.external_id,
    }


def _members_of(connection: Connection, row: ScimGroup) -> dict[UUID, str]:
    found: GroupRow = GET[True].first(
        tenant_id=connection.tenant_id, connection_id=connection.id, id=row.id
    )
    return {UUID(member_id): display for member_id, _, display in found.members or ()}


def _add(connection: Connection, row: ScimGroup, members: Mapping[UUID, str]) -> None:
    """Add those of the members who are the directory's own people and groups."""
    if not members:
        return
    values = {"tenant_id": connection.tenant_id, "connection_id": connection.id}
    known = {one.id: one.is_group for one in FIND_KNOWN.all(**values, ids=list(members))}
    known.pop(row.id, None)
    with writes() as w:
        for member_id, is_group in sorted(known.items()):
            member = {
                "tenant_id": row.tenant_id,
                "group_id": row.id,
                "member_id": member_id,
                "user_id": None if is_group else member_id,
                "nested_id": member_id if is_group else None,
                "display": members[member_id],
            }
            w.insert(ScimMember, member)


def _apply_roles(connection: Connection, user_ids: Collection[UUID], actor: Actor) -> None:
    """Give each of these people the highest role of their groups.

    Who has lost the last group that gave a role gets the default role. Any other role stays.
    """
    if not user_ids:
        return
    people = FIND_ROLES.all(tenant_id=connection.tenant_id, ids=list(user_ids))
    given = {found.id: _highest(connection, found.groups or ()) for found in people}
    marked = [one.user_id for one in people if one.has_mapped_role != (given[one.id] is not None)]
    if marked:
        MARK.execute(of_tenant_id=connection.tenant_id, ids=marked)
    for found in people:
        role = given[found.id]
        if role is None and found.has_mapped_role:
            role = Role(connection.default_role)
        if role is not None and role != found.role:
            memberships.set_role(found.id, role, actor=actor)


def _highest(connection: Connection, groups: Sequence[tuple[str, str, str]]) -> Role | None:
    roles = [role for names in groups if (role := _mapped(connection, *names)) is not None]
    return max(roles, key=lambda role: role.rank) if roles else None


def _role_of(connection: Connection, row: ScimGroup) -> Role | None:
    return _mapped(connection, str(row.id), row.display_name_key, row.external_id)


def _mapped(connection: Connection, group_id: str, name_key: str, external_id: str) -> Role | None:
    """The highest role that the connection maps to a group's name, compared without case, or id."""
    roles = [
        Role(role)
        for name, role in connection.group_roles.items()
        if email_key(name) == name_key or name in (group_id, external_id)
    ]
    return max(roles, key=lambda role: role.rank) if roles else None

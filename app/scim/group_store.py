"""SCIM's Groups: a directory's requests, and the roles that groups give their members."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from scim2_models import Group as GroupResource
from scim2_models import NotFoundException, ResponseParameters, SearchRequest
from scim2_server.storage import SearchPage

from app.audit.service import record
from app.auth.permissions import Role
from app.connections.models import Connection
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries
from app.core.db.queries import Change, id_or_none
from app.core.db.transactions import RowChanged
from app.core.db.writes import insert_row, writes
from app.core.errors import Conflict
from app.core.validation.scalars import bounded_name
from app.memberships import service as memberships
from app.roles import role_assignments, synced_assignments
from app.scim import bounds, groups
from app.scim.errors import invalid_value
from app.scim.filters import GROUP_COLUMNS
from app.scim.groups import GroupRow
from app.scim.lookups import Position, Search
from app.scim.models import ScimGroup, ScimMember
from app.users.emails import email_key

MAX_MEMBERS = 10_000  # of a group
MAX_MEMBERS_SHOWN = 20_000  # of all groups of a page
SEARCH = {
    True: Search("scim_groups", groups.WITH_MEMBERS, ScimGroup, GROUP_COLUMNS),
    False: Search("scim_groups", groups.WITHOUT_MEMBERS, ScimGroup, GROUP_COLUMNS),
}


class GroupExists(Conflict):
    scim_type = "uniqueness"
    detail = "Another group of this directory has this displayName."


CONFLICTS = {"uq_scim_groups_tenant_id_connection_id_display_name_key": GroupExists}


class Group(NamedTuple):
    """What a resource says about a group; ``members`` are ids, each with a name to display."""

    display_name: str
    external_id: str
    members: Mapping[UUID, str]


class GroupStore:
    """The groups of a connection.

    Members that the directory has not provisioned, or has deleted, are left out. The roles of
    members follow each change; raises the errors of :func:`app.memberships.service.set_role`.
    """

    def __init__(self, connection: Connection, actor: Actor) -> None:
        self._connection = connection
        self._key = {"tenant_id": connection.tenant_id, "connection_id": connection.id}
        self._actor = actor

    def get(self, resource_id: str, parameters: ResponseParameters | None = None) -> GroupResource:
        return as_resource(self._find(resource_id, with_members=_shows_members(parameters)))

    def search(self, request: SearchRequest, after: Position | None) -> SearchPage:
        page = SEARCH[_shows_members(request)].run(self._connection, request, after)
        shown = page.up_to(MAX_MEMBERS_SHOWN, lambda row: len(row.members or ()))
        return SearchPage(shown.total, [as_resource(row) for row in shown.rows], shown.next)

    def create(self, resource: GroupResource) -> GroupResource:
        group = as_group(resource)
        row = insert_row(ScimGroup, {**self._key, **_stored(group)}, conflicts=CONFLICTS)
        self._lock(group.members)
        self._record("scim_group.created", row, {}, _shown(row, self._add(row, group.members)))
        self._assign_roles(row)
        if self._role_of(row) is not None:
            self._apply_roles(group.members.keys())
        return self.get(str(row.id))

    def update(self, resource: GroupResource, expected_version: str | None) -> GroupResource:
        """Make a group what the directory says now; RowChanged if the version is another."""
        resource_id = resource.id or ""
        found = self._find_version(resource_id, expected_version)
        group = as_group(resource)
        before = _lock(found)
        old = self._members_of(before)
        added = dict(group.members.items() - old.items())
        removed = dict(old.items() - group.members.items())
        values = _stored(group)
        if added or removed:
            values["updated_at"] = utcnow()  # also a change of members is a new version
        row, _ = queries.update_row(ScimGroup, before, values, conflicts=CONFLICTS)
        roles = {self._role_of(before), self._role_of(row)}
        is_same = len(roles) == 1
        affected = {*added, *removed} if is_same else {*old, *group.members}
        self._lock(affected)
        if removed:
            groups.REMOVE.execute(tenant_id=row.tenant_id, group_id=row.id, ids=list(removed))
        joined = self._add(row, added) - old.keys()
        left = removed.keys() - group.members.keys()
        self._record("scim_group.updated", row, _shown(before, left), _shown(row, joined))
        self._assign_roles(row)
        if roles != {None}:
            self._apply_roles(affected)
        return self.get(resource_id)

    def delete(self, resource_id: str, expected_version: str | None) -> None:
        row = _lock(self._find_version(resource_id, expected_version))
        members = self._members_of(row)
        self._lock(members)
        role_assignments.end("group_id", row.id, tenant_id=row.tenant_id, actor=self._actor)
        queries.delete_row(ScimGroup, row)
        self._record("scim_group.deleted", row, _shown(row, members), {})
        if self._role_of(row) is not None:
            self._apply_roles(members.keys())

    def _find_version(self, resource_id: str, expected_version: str | None) -> ScimGroup:
        found = self._find(resource_id, with_members=False).ScimGroup
        if expected_version is not None and version_of(found) != expected_version:
            raise RowChanged("scim_groups")
        return found

    def _find(self, resource_id: str, *, with_members: bool) -> GroupRow:
        group_id = id_or_none(resource_id)
        found: GroupRow | None = None
        if group_id is not None:
            found = groups.GET[with_members].first(**self._key, id=group_id)
        if found is None:
            raise NotFoundException(detail=f"No group has the id {resource_id[:100]!r}.")
        bounds.count_visits(len(found.members or ()))
        return found

    def _members_of(self, row: ScimGroup) -> dict[UUID, str]:
        found: GroupRow = groups.GET[True].one(**self._key, id=row.id)
        return {UUID(member_id): display for member_id, _, display in found.members or ()}

    def _lock(self, members: Collection[UUID]) -> None:
        """Lock these people until the transaction ends; what is read afterwards stays true."""
        if members:
            groups.LOCK.all(tenant_id=self._connection.tenant_id, ids=list(members))

    def _add(self, row: ScimGroup, members: Mapping[UUID, str]) -> set[UUID]:
        """Add those of the members who are the directory's own people and groups; their ids."""
        if not members:
            return set()
        known = groups.FIND_KNOWN.all(**self._key, ids=list(members))
        known = [one for one in known if one.id != row.id]
        with writes() as w:
            for member_id, is_group in sorted(known):
                member = {
                    "tenant_id": row.tenant_id,
                    "group_id": row.id,
                    "member_id": member_id,
                    "user_id": None if is_group else member_id,
                    "nested_id": member_id if is_group else None,
                    "display": members[member_id],
                }
                w.insert(ScimMember, member)
        return {one.id for one in known}

    def _record(
        self, action: str, row: ScimGroup, old: dict[str, object], new: dict[str, object]
    ) -> None:
        """Add an audit row about the values of :func:`_shown` that differ, if any."""
        names = [name for name in old or new if old.get(name) != new.get(name)]
        if names:
            before, after = ({name: one[name] for name in names if one} for one in (old, new))
            record(action, row, Change(before, after), actor=self._actor)

    def _apply_roles(self, user_ids: Collection[UUID]) -> None:
        """Give each of these people, who are locked, the highest role of their groups.

        A person who has lost the last group that gave a role gets the default role. Other roles
        stay.
        """
        if not user_ids:
            return
        tenant_id = self._connection.tenant_id
        people = groups.FIND_ROLES.all(tenant_id=tenant_id, ids=list(user_ids))
        given = {
            one.id: _highest([key for names in one.groups or () for key in self._keys(*names)])
            for one in people
        }
        for is_mapped in (True, False):
            changed = [
                one.user_id
                for one in people
                if (given[one.id] is not None) is is_mapped is not one.has_mapped_role
            ]
            if changed:
                groups.MARK.execute(of_tenant_id=tenant_id, ids=changed, is_mapped=is_mapped)
        for one in people:
            role = given[one.id]
            if role is None and one.has_mapped_role:
                role = Role(self._connection.default_role)
            if role is not None and role != one.role:
                memberships.set_role(one.id, role, actor=self._actor)

    def _assign_roles(self, row: ScimGroup) -> None:
        """Assign to the group itself what is mapped to it besides the five roles of memberships."""
        wanted = {(row.tenant_id, row.id): {*self._keys_of(row)} - {*Role}}
        with writes() as w:
            synced_assignments.follow("group_id", wanted, actor=self._actor, into=w)

    def _role_of(self, row: ScimGroup) -> Role | None:
        return _highest(self._keys_of(row))

    def _keys_of(self, row: ScimGroup) -> list[str]:
        return self._keys(str(row.id), row.display_name_key, row.external_id)

    def _keys(self, group_id: str, name_key: str, external_id: str) -> list[str]:
        """The roles that the connection maps to a group's name, compared without case, or id."""
        return [
            key
            for name, key in self._connection.group_roles.items()
            if email_key(name) == name_key or name in (group_id, external_id)
        ]


def _highest(keys: Sequence[str]) -> Role | None:
    return next((role for role in Role if role in keys), None)


def _lock(found: ScimGroup) -> ScimGroup:
    """The locked row; raises RowChanged if another transaction has changed it since it was read."""
    row: ScimGroup = queries.lock_with(ScimGroup, found.id)[0]
    if row.version != found.version:
        raise RowChanged("scim_groups")
    return row


def _stored(group: Group) -> dict[str, object]:
    return {
        "display_name": group.display_name,
        "display_name_key": email_key(group.display_name),
        "external_id": group.external_id,
    }


def _shown(row: ScimGroup, members: Iterable[UUID]) -> dict[str, object]:
    """The values of a group for the audit trail; for an update the members who left or joined."""
    ids = sorted(map(str, members))
    return {"display_name": row.display_name, "external_id": row.external_id, "members": ids}


def _shows_members(parameters: ResponseParameters | None) -> bool:
    """Whether the answer to a request with these parameters has the members of groups."""
    if parameters is None:
        return True
    if parameters.attributes:
        return any("members" in str(path).lower() for path in parameters.attributes)
    excluded = [str(path).lower() for path in parameters.excluded_attributes or ()]
    return not any(path.rpartition(":")[2] == "members" for path in excluded)


def version_of(row: ScimGroup) -> str:
    """The ETag."""
    return f'W/"{row.version}"'


def as_resource(found: GroupRow) -> GroupResource:
    row = found.ScimGroup
    members = [
        {
            "value": member_id,
            "$ref": f"{'Groups' if is_group else 'Users'}/{member_id}",
            "type": "Group" if is_group else "User",
            "display": display or None,
        }
        for member_id, is_group, display in found.members or ()
    ]
    return GroupResource.model_validate(
        {
            "id": str(row.id),
            "externalId": row.external_id or None,
            "displayName": row.display_name,
            "members": members or None,
            "meta": {
                "resourceType": "Group",
                "created": row.created_at,
                "lastModified": row.updated_at,
                "version": version_of(row),
            },
        }
    )


def as_group(resource: GroupResource) -> Group:
    """What a resource says about a group; members whose id is not an id of ours are left out.

    Raises ScimError for a name that is empty or too long, and for too many members.
    """
    members = {}
    for member in resource.members or ():
        if not member.value:
            raise invalid_value("members: each member needs a value.")
        member_id = id_or_none(member.value)
        if member_id is not None:
            members[member_id] = bounded_name(member.display or "")
    group = Group(resource.display_name or "", resource.external_id or "", members)
    if not group.display_name.strip():
        raise invalid_value("displayName must not be empty.")
    bounds.check_names(displayName=group.display_name, externalId=group.external_id)
    if len(members) > MAX_MEMBERS:
        raise invalid_value(f"A group has at most {MAX_MEMBERS} members.")
    return group

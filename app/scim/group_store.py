"""SCIM's Groups as :mod:`app.scim.groups` stores them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from scim2_models import Group as GroupResource
from scim2_models import NotFoundException, ResponseParameters, SearchRequest
from scim2_server.storage import SearchPage

from app.core.actors import Actor
from app.core.db.queries import id_or_none
from app.core.db.transactions import RowChanged
from app.scim import bounds, groups
from app.scim.filters import GROUP_COLUMNS
from app.scim.groups import Group, GroupRow
from app.scim.models import Connection, ScimGroup
from app.scim.search import Search

MAX_MEMBERS_SHOWN = 20_000  # of all groups of a page
MAX_DISPLAY = 255  # characters of a member's name; the rest is left out
SEARCH = {
    True: Search("scim_groups", groups.WITH_MEMBERS, ScimGroup, GROUP_COLUMNS),
    False: Search("scim_groups", groups.WITHOUT_MEMBERS, ScimGroup, GROUP_COLUMNS),
}


class GroupStore:
    """The groups of a connection."""

    def __init__(self, connection: Connection, actor: Actor) -> None:
        self._connection = connection
        self._actor = actor

    def get(
        self, resource_id: str, parameters: ResponseParameters[Any] | None = None
    ) -> GroupResource:
        return as_resource(self._find(resource_id, with_members=_shows_members(parameters)))

    def search(self, request: SearchRequest[Any], after: UUID | None) -> SearchPage:
        page = SEARCH[_shows_members(request)].run(self._connection, request, after)
        shown = page.up_to(MAX_MEMBERS_SHOWN, lambda row: len(row.members or ()))
        return SearchPage(shown.total, [as_resource(row) for row in shown.rows], shown.next)

    def create(self, resource: GroupResource) -> GroupResource:
        group_id = groups.create(self._connection, as_group(resource), actor=self._actor)
        return self.get(str(group_id))

    def update(self, resource: GroupResource, expected_version: str | None) -> GroupResource:
        resource_id = resource.id or ""
        found = self._lockable(resource_id, expected_version)
        groups.update(self._connection, found, as_group(resource), actor=self._actor)
        return self.get(resource_id)

    def delete(self, resource_id: str, expected_version: str | None) -> None:
        found = self._lockable(resource_id, expected_version)
        groups.remove(self._connection, found, actor=self._actor)

    def _lockable(self, resource_id: str, expected_version: str | None) -> ScimGroup:
        found = self._find(resource_id, with_members=False).ScimGroup
        if expected_version is not None and version_of(found) != expected_version:
            raise RowChanged("scim_groups")
        return found

    def _find(self, resource_id: str, *, with_members: bool) -> GroupRow:
        group_id = id_or_none(resource_id)
        found: GroupRow | None = None
        if group_id is not None:
            key = {"tenant_id": self._connection.tenant_id, "connection_id": self._connection.id}
            found = groups.GET[with_members].first(**key, id=group_id)
        if found is None:
            raise NotFoundException(detail=f"No group has the id {resource_id[:100]!r}.")
        bounds.count_visits(len(found.members or ()))
        return found


def _shows_members(parameters: ResponseParameters[Any] | None) -> bool:
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
    """The resource of a group and its members."""
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
    """What a resource says about a group; members whose id is no id of ours are left out."""
    members = {}
    for member in resource.members or ():
        member_id = id_or_none(member.value or "")
        if member_id is not None:
            members[member_id] = (member.display or "")[:MAX_DISPLAY]
    return Group(
        display_name=resource.display_name or "",
        external_id=resource.external_id or "",
        members=members,
    )

"""SCIM's Groups as :mod:`app.scim.groups` stores them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from scim2_models import Group as GroupResource
from scim2_models import NotFoundException, SearchRequest
from scim2_server.storage import SearchPage

from app.core.actors import Actor
from app.core.db.queries import id_or_none
from app.core.db.transactions import RowChanged
from app.scim import bounds, groups
from app.scim.filters import GROUP_COLUMNS
from app.scim.groups import Group
from app.scim.models import ScimGroup
from app.scim.parameters import Keeps, kept
from app.scim.search import Search

MAX_MEMBERS_SHOWN = 20_000  # of all groups of a page
MAX_DISPLAY = 255  # characters of a member's name; the rest is left out
SEARCH = {
    True: Search("scim_groups", groups.WITH_MEMBERS, ScimGroup, GROUP_COLUMNS),
    False: Search("scim_groups", groups.WITHOUT_MEMBERS, ScimGroup, GROUP_COLUMNS),
}


class GroupStore:
    """The groups of a connection."""

    def __init__(self, connection: Any, actor: Actor) -> None:
        self._connection = connection
        self._actor = actor

    def get(self, resource_id: str, keeps: Keeps) -> Any:
        return as_resource(self._find(resource_id, with_members=keeps("members")))

    def search(self, request: SearchRequest[Any], after: UUID | None) -> SearchPage:
        page = SEARCH[kept(request)("members")].run(self._connection, request, after)
        shown = page.up_to(MAX_MEMBERS_SHOWN, lambda row: row.member_count)
        return SearchPage(shown.total, [as_resource(row) for row in shown.rows], shown.next)

    def create(self, resource: Any) -> Any:
        group_id = groups.create(self._connection, as_group(resource), actor=self._actor)
        return as_resource(self._find(str(group_id)))

    def update(self, resource: Any, expected_version: str | None) -> Any:
        found = self._found(resource.id, expected_version)
        groups.update(self._connection, found, as_group(resource), actor=self._actor)
        return as_resource(self._find(resource.id))

    def delete(self, resource_id: str, expected_version: str | None) -> None:
        found = self._found(resource_id, expected_version)
        groups.remove(self._connection, found, actor=self._actor)

    def _found(self, resource_id: str, expected_version: str | None) -> ScimGroup:
        found: ScimGroup = self._find(resource_id, with_members=False).ScimGroup
        if expected_version is not None and version_of(found) != expected_version:
            raise RowChanged("scim_groups")
        return found

    def _find(self, resource_id: str, *, with_members: bool = True) -> Any:
        group_id = id_or_none(resource_id)
        found = group_id and groups.GET[with_members].first(
            tenant_id=self._connection.tenant_id, connection_id=self._connection.id, id=group_id
        )
        if not found:
            raise NotFoundException(detail=f"No group has the id {resource_id[:100]!r}.")
        bounds.count_visits(found.member_count)
        return found


def version_of(row: ScimGroup) -> str:
    """The ETag."""
    return f'W/"{row.version}"'


def as_resource(found: Any) -> Any:
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


def as_group(resource: Any) -> Group:
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

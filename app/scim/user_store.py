"""SCIM's Users as :mod:`app.scim.people` stores them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from scim2_models import NotFoundException, ResponseParameters, SearchRequest
from scim2_server.storage import SearchPage

from app.core.actors import Actor
from app.core.db.queries import id_or_none
from app.core.db.transactions import RowChanged
from app.scim import people
from app.scim.filters import USER_COLUMNS
from app.scim.models import Connection, ScimUser
from app.scim.people import PEOPLE, Person, PersonRow
from app.scim.resources import UserResource
from app.scim.search import Search

OWN = ("id", "meta", "userName", "externalId", "roles", "groups", "password")
"""Attributes that are not stored as they are sent; a password is not stored at all."""

SEARCH = Search("scim_users", PEOPLE, ScimUser, USER_COLUMNS)


class UserStore:
    """The users of a connection."""

    def __init__(self, connection: Connection, actor: Actor) -> None:
        self._connection = connection
        self._actor = actor

    def get(
        self, resource_id: str, parameters: ResponseParameters[Any] | None = None
    ) -> UserResource:
        return as_resource(self._find(resource_id))

    def search(self, request: SearchRequest[Any], after: UUID | None) -> SearchPage:
        page = SEARCH.run(self._connection, request, after)
        return SearchPage(page.total, [as_resource(row) for row in page.rows], page.next)

    def create(self, resource: UserResource) -> UserResource:
        user_id = people.create(self._connection, as_person(resource), actor=self._actor)
        return self.get(str(user_id))

    def update(self, resource: UserResource, expected_version: str | None) -> UserResource:
        resource_id = resource.id or ""
        found = self._find(resource_id, expected_version)
        people.update(self._connection, found, as_person(resource), actor=self._actor)
        return self.get(resource_id)

    def delete(self, resource_id: str, expected_version: str | None) -> None:
        people.end(self._connection, self._find(resource_id, expected_version), actor=self._actor)

    def _find(self, resource_id: str, expected_version: str | None = None) -> PersonRow:
        user_id = id_or_none(resource_id)
        found: PersonRow | None = None
        if user_id is not None:
            key = {"tenant_id": self._connection.tenant_id, "connection_id": self._connection.id}
            found = people.GET.first(**key, id=user_id)
        if found is None:
            raise NotFoundException(detail=f"No user has the id {resource_id[:100]!r}.")
        if expected_version is not None and version_of(found) != expected_version:
            raise RowChanged("scim_users")
        return found


def version_of(found: PersonRow) -> str:
    """The ETag: it changes with the SCIM resource, the membership and the user's activity."""
    state = "" if found.User.is_active else ".inactive"
    return f'W/"{found.ScimUser.version}.{found.Membership.version or 0}{state}"'


def as_resource(found: PersonRow) -> UserResource:
    """The resource of a row of :data:`PEOPLE`.

    ``active`` is the state of the membership, whatever was sent. It is left out only after the
    directory has removed the attribute.
    """
    record, role = found.ScimUser, found.Membership.role
    groups = [
        {"value": group_id, "$ref": f"Groups/{group_id}", "display": name, "type": "direct"}
        for group_id, name in found.groups or ()
    ]
    return UserResource.model_validate(
        {
            **record.attributes,
            "id": str(record.id),
            "externalId": record.external_id or None,
            "userName": record.user_name,
            "active": found.is_active if "active" in record.attributes else None,
            "roles": [{"value": role, "primary": True}] if role else None,
            "groups": groups or None,
            "meta": {
                "resourceType": "User",
                "created": record.created_at,
                "lastModified": found.changed_at,
                "version": version_of(found),
            },
        }
    )


def as_person(resource: UserResource) -> Person:
    """What a resource says about a person."""
    name = resource.name
    attributes = resource.model_dump()
    for own in OWN:
        attributes.pop(own, None)
    return Person(
        user_name=resource.user_name or "",
        external_id=resource.external_id or "",
        email=_address(resource),
        first_name=None if name is None else name.given_name or "",
        last_name=None if name is None else name.family_name or "",
        is_active=resource.active,
        attributes=attributes,
    )


def _address(resource: UserResource) -> str:
    """The primary e-mail address, else that for work, else the first; else a userName like one."""
    emails = [email for email in resource.emails or () if email.value]
    ranked = sorted(emails, key=lambda email: (not email.primary, email.type != "work"))
    if ranked:
        return str(ranked[0].value)
    user_name = resource.user_name or ""
    return user_name if "@" in user_name else ""

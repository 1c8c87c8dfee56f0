"""A person: read from a SCIM resource, and shown as a resource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from app.core import json_text
from app.core.validation.scalars import address_or_empty, bounded_name
from app.scim.bounds import check_controls, check_names
from app.scim.errors import invalid_value
from app.scim.people import PersonRow
from app.scim.resources import UserResource

MAX_ATTRIBUTES = 32 * 1024  # bytes of JSON of a user, so that a page of users stays small
OWN = ("id", "meta", "userName", "externalId", "roles", "groups", "password")
"""Attributes that are not stored as they are sent; a password is not stored at all."""

CHECKED = ("name", "displayName", "nickName", "emails")  # have no control characters


class Person(NamedTuple):
    """What a resource says about a person. A name or activity of None was not sent."""

    user_name: str
    external_id: str
    email: str
    first_name: str | None
    last_name: str | None
    is_active: bool | None
    attributes: dict[str, Any]


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


def as_person(resource: UserResource, known: Mapping[str, Any] | None = None) -> Person:
    """What a resource says about a person; what is ``known`` was checked or is older than a check.

    A long first or last name is cut and logged. Raises ScimError for a user name or an id that is
    empty or too long, a bad address, control characters, or too much in all.
    """
    known = known or {}
    attributes = resource.model_dump()
    for own in OWN:
        attributes.pop(own, None)
    name, sent = resource.name, _address(resource)
    person = Person(
        user_name=resource.user_name or "",
        external_id=resource.external_id or "",
        email=address_or_empty(sent),
        first_name=None if name is None else bounded_name(name.given_name or ""),
        last_name=None if name is None else bounded_name(name.family_name or ""),
        is_active=resource.active,
        attributes=attributes,
    )
    if not person.user_name.strip():
        raise invalid_value("userName must not be empty.")
    check_names(userName=person.user_name, externalId=person.external_id)
    for checked in CHECKED:
        if attributes.get(checked) != known.get(checked):
            check_controls(checked, attributes.get(checked))
    if (
        resource.emails
        and sent
        and not person.email
        and attributes["emails"] != known.get("emails")
    ):
        raise invalid_value("emails: this is not a valid e-mail address.")
    if json_text.size(attributes) > MAX_ATTRIBUTES:
        raise invalid_value(f"A user has at most {MAX_ATTRIBUTES} bytes of JSON.")
    return person


def _address(resource: UserResource) -> str:
    """The primary e-mail address, else that for work, the first, or a userName with an ``@``."""
    emails = [email for email in resource.emails or () if email.value]
    ranked = sorted(emails, key=lambda email: (not email.primary, email.type != "work"))
    user_name = resource.user_name or ""
    return str(ranked[0].value) if ranked else user_name if "@" in user_name else ""

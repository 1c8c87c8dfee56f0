"""SCIM's Users: a directory's requests, applied by the services of users and memberships."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from scim2_models import NotFoundException, ResponseParameters, SearchRequest
from scim2_server.storage import SearchPage

from app.connections.models import Connection, Deactivate
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries
from app.core.db.queries import id_or_none
from app.core.db.transactions import RowChanged
from app.core.db.writes import insert_row, writes
from app.core.errors import Conflict
from app.core.validation.scalars import MAX_NAME
from app.memberships import service as memberships
from app.memberships.models import Membership
from app.scim import changes
from app.scim.errors import invalid_value
from app.scim.filters import USER_COLUMNS
from app.scim.lookups import Position, Search
from app.scim.models import ScimEmail, ScimMember, ScimUser
from app.scim.people import FIND, GET, PEOPLE, PersonRow
from app.scim.person import Person, as_person, as_resource, version_of
from app.scim.resources import UserResource
from app.tenants.models import Tenant
from app.users import service as users
from app.users.emails import email_key
from app.users.models import User

EMAIL_TEXTS = ("value", "type", "display")
SEARCH = Search("scim_users", PEOPLE, ScimUser, USER_COLUMNS)


class UserNameTaken(Conflict):
    scim_type = "uniqueness"
    detail = "Another user of this directory has this userName."


class Managed(Conflict):
    scim_type = "uniqueness"
    detail = "A directory of this tenant has provisioned this user already."


CONFLICTS = {"uq_scim_users_user_name_key": UserNameTaken, "pk_scim_users": Managed}


class UserStore:
    """The users of a connection. Its methods raise the errors of the services too."""

    def __init__(self, connection: Connection, actor: Actor) -> None:
        self._connection = connection
        self._actor = actor

    def get(self, resource_id: str, parameters: ResponseParameters | None = None) -> UserResource:
        return as_resource(self._find(resource_id))

    def search(self, request: SearchRequest, after: Position | None) -> SearchPage:
        page = SEARCH.run(self._connection, request, after)
        return SearchPage(page.total, [as_resource(row) for row in page.rows], page.next)

    def create(self, resource: UserResource) -> UserResource:
        """Provision a person: link the user whom the directory means, or create a user.

        The user is found by ``idp_user_id``, which is the externalId or the userName, else by the
        e-mail address. Raises Conflict with ``uniqueness`` for a person who is provisioned already.
        """
        person = as_person(resource)
        tenant_id, first_id = self._connection.tenant_id, person.external_id or person.user_name
        named = {
            "tenant_id": tenant_id,
            "first_id": first_id,
            "idp_user_ids": [first_id, person.user_name],
            "email_key": email_key(person.email),
        }
        found = FIND.first(**named)
        if found is None:
            queries.lock_with(Tenant, tenant_id)  # until now, the person may have come otherwise
            found = FIND.first(**named)
        membership = record = None
        if found is None:
            if len(first_id) > MAX_NAME:
                raise invalid_value(f"The id of a new user has at most {MAX_NAME} characters.")
            values = {
                "idp_user_id": first_id,
                "email": person.email,
                "first_name": person.first_name or "",
                "last_name": person.last_name or "",
            }
            user = users.create(tenant_id, values, actor=self._actor)
        else:
            user, membership = found.User, _membership_of(found)
            record = found.ScimUser if found.ScimUser.id else None
        if record is not None and record.deleted_at is None:
            ids = {person.user_name: "userName", person.external_id: "externalId"}
            collided = ids.get(user.idp_user_id, "emails")
            raise Managed(f"{Managed.detail[:-1]}, with the same {collided}.")
        person = person._replace(attributes={"active": True, **person.attributes})
        # The membership comes first: what changes it later would be the resource's last change.
        self._set_active(user, membership, person.is_active is not False)
        stored = self._store(user.id, person, record)
        if found is not None:
            user = self._change_profile(user, person)
            changes.record_change(user, {}, changes.values_of(stored), actor=self._actor)
        return self.get(str(user.id))

    def update(self, resource: UserResource, expected_version: str | None) -> UserResource:
        """Make a person what the directory says now; RowChanged if the version is another."""
        resource_id = resource.id or ""
        found = self._find(resource_id, expected_version)
        person = as_person(resource, found.ScimUser.attributes)
        record = _lock(found)
        stored, _ = queries.update_row(ScimUser, record, self._stored(person), conflicts=CONFLICTS)
        _store_emails(record, record.attributes, person.attributes)
        user = self._change_profile(found.User, person)
        before, after = changes.values_of(record), changes.values_of(stored)
        changes.record_change(user, before, after, actor=self._actor)
        if person.is_active not in (None, found.is_active):
            self._set_active(found.User, _membership_of(found), not found.is_active)
        return self.get(resource_id)

    def delete(self, resource_id: str, expected_version: str | None) -> None:
        """Deprovision a person: end the membership, and leave a tombstone without personal data."""
        found = self._find(resource_id, expected_version)
        record = _lock(found)
        self._set_active(found.User, _membership_of(found), False)
        queries.delete_where(ScimMember, tenant_id=record.tenant_id, user_id=record.id)
        empty = {"user_name": "", "user_name_key": "", "external_id": "", "attributes": {}}
        values = {**empty, "has_mapped_role": False, "deleted_at": utcnow()}
        queries.update_row(ScimUser, record, values)
        _store_emails(record, record.attributes, {})
        changes.record_change(found.User, changes.names_of(record), {}, actor=self._actor)

    def _find(self, resource_id: str, expected_version: str | None = None) -> PersonRow:
        user_id = id_or_none(resource_id)
        found: PersonRow | None = None
        if user_id is not None:
            key = {"tenant_id": self._connection.tenant_id, "connection_id": self._connection.id}
            found = GET.first(**key, id=user_id)
        if found is None:
            raise NotFoundException(detail=f"No user has the id {resource_id[:100]!r}.")
        if expected_version is not None and version_of(found) != expected_version:
            raise RowChanged("scim_users")
        return found

    def _store(self, user_id: UUID, person: Person, record: ScimUser | None) -> ScimUser:
        """Store what only SCIM knows and return it; a tombstone is used again."""
        values = self._stored(person)
        if record is None:
            key = {"tenant_id": self._connection.tenant_id, "id": user_id}
            stored = insert_row(ScimUser, {**key, **values}, conflicts=CONFLICTS)
        else:
            stored, _ = queries.update_row(ScimUser, record, values, conflicts=CONFLICTS)
        _store_emails(stored, record.attributes if record else {}, person.attributes)
        return stored

    def _stored(self, person: Person) -> dict[str, object]:
        return {
            "connection_id": self._connection.id,
            "user_name": person.user_name,
            "user_name_key": email_key(person.user_name),
            "external_id": person.external_id,
            "attributes": person.attributes,
            "deleted_at": None,
        }

    def _change_profile(self, user: User, person: Person) -> User:
        """The user, with the names and the address that the directory says."""
        told = {
            "email": person.email or None,
            "first_name": person.first_name,
            "last_name": person.last_name,
        }
        changed = {
            name: value
            for name, value in told.items()
            if value is not None and value != getattr(user, name)
        }
        return users.update(user.id, changed, actor=self._actor) if changed else user

    def _set_active(self, user: User, membership: Membership | None, is_active: bool) -> None:
        """Activate or end the membership; a person without one gets it with the default role."""
        connection, actor = self._connection, self._actor
        if is_active and not user.is_active:
            users.update(user.id, {"is_active": True}, actor=actor)
        if membership is None:
            values = {"user_id": user.id, "role": connection.default_role}
            if is_active:
                memberships.create(connection.tenant_id, values, actor=actor)
                return
            membership = memberships.create_for(user, values, actor=actor)
        if membership.is_active != is_active:
            memberships.set_active(membership.id, is_active, actor=actor)
        if not is_active and user.is_active and connection.deactivate == Deactivate.USER:
            users.update(user.id, {"is_active": False}, actor=actor)


def _membership_of(found: PersonRow) -> Membership | None:
    return found.Membership if found.Membership.id else None


def _lock(found: PersonRow) -> ScimUser:
    """The locked row; raises RowChanged if another transaction has changed it since it was read."""
    record: ScimUser = queries.lock_with(ScimUser, found.ScimUser.id)[0]
    if record.version != found.ScimUser.version or record.deleted_at is not None:
        raise RowChanged("scim_users")
    return record


def _store_emails(record: ScimUser, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Replace the entries by which filters find the user's addresses, if they have changed."""
    key = {"tenant_id": record.tenant_id, "user_id": record.id}
    old, emails = before.get("emails") or (), after.get("emails") or ()
    if old == emails:
        return
    if old:
        queries.delete_where(ScimEmail, **key)
    with writes() as w:
        for position, email in enumerate(emails):
            texts = {name: (email.get(name) or "").lower() for name in EMAIL_TEXTS}
            is_primary = email.get("primary") is True
            w.insert(ScimEmail, {**key, "position": position, **texts, "is_primary": is_primary})

"""The people of a connection: what a directory says about them, applied by the domain's services.

A person of SCIM is a user with a membership. What only SCIM knows is stored beside them, in
``scim_users``; names, address and activity are those of the user and the membership.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Text,
    and_,
    any_,
    bindparam,
    case,
    delete,
    func,
    or_,
    select,
)

from app.core import json_text
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries
from app.core.db.statements import Statement
from app.core.db.transactions import RowChanged
from app.core.db.writes import insert_row, writes
from app.core.errors import Conflict
from app.memberships import service as memberships
from app.memberships.models import Membership
from app.scim import changes
from app.scim.errors import invalid_value, not_unique
from app.scim.models import Connection, Deactivate, ScimEmail, ScimGroup, ScimMember, ScimUser
from app.users import service as users
from app.users.emails import email_key
from app.users.models import User

MAX_NAME = 1000  # characters of a user name, an external id or a group's name
MAX_BYTES = 2048  # of the same; an entry of a B-tree index has at most 2,704
MAX_EMAILS = 100  # of a user
MAX_ATTRIBUTES = 32 * 1024  # bytes of JSON of a user, so that a page of users stays small
EMAIL_TEXTS = ("value", "type", "display")

IS_ACTIVE: ColumnElement[bool] = func.coalesce(and_(User.is_active, Membership.is_active), False)
CHANGED_AT = func.greatest(ScimUser.updated_at, Membership.updated_at)
_in_groups = (
    select(func.json_agg(func.json_build_array(ScimGroup.id, ScimGroup.display_name)))
    .select_from(ScimMember)
    .join(
        ScimGroup,
        and_(ScimGroup.tenant_id == ScimMember.tenant_id, ScimGroup.id == ScimMember.group_id),
    )
    .where(ScimMember.tenant_id == ScimUser.tenant_id, ScimMember.user_id == ScimUser.id)
    .scalar_subquery()
)
PEOPLE = (
    select(
        ScimUser,
        User,
        Membership,
        IS_ACTIVE.label("is_active"),
        CHANGED_AT.label("changed_at"),
        _in_groups.label("groups"),
    )
    .outerjoin(User, and_(User.tenant_id == ScimUser.tenant_id, User.id == ScimUser.id))
    .outerjoin(
        Membership,
        and_(Membership.tenant_id == ScimUser.tenant_id, Membership.user_id == ScimUser.id),
    )
    .where(
        ScimUser.tenant_id == bindparam("tenant_id"),
        ScimUser.connection_id == bindparam("connection_id"),
        ScimUser.deleted_at.is_(None),
    )
)
"""The people of a connection. All have a user; of an outer join that nothing uses, PostgreSQL reads
no row."""
GET = Statement("scim_users.get", PEOPLE.where(ScimUser.id == bindparam("id")))

_ids = any_(bindparam("idp_user_ids", type_=ARRAY(Text)))
_rank = case((User.idp_user_id == bindparam("first_id"), 0), (User.idp_user_id == _ids, 1), else_=2)
FIND = Statement(
    "scim_users.find_person",
    select(User, Membership, ScimUser)
    .outerjoin(
        Membership, and_(Membership.tenant_id == User.tenant_id, Membership.user_id == User.id)
    )
    .outerjoin(ScimUser, and_(ScimUser.tenant_id == User.tenant_id, ScimUser.id == User.id))
    .where(
        User.tenant_id == bindparam("tenant_id"),
        or_(
            User.idp_user_id == _ids,
            and_(User.email_key == bindparam("email_key"), User.email_key != ""),
        ),
    )
    .order_by(_rank, User.is_active.desc(), User.id)
    .limit(1),
)
DELETE_EMAILS = Statement(
    "scim_emails.delete",
    delete(ScimEmail).where(
        ScimEmail.tenant_id == bindparam("tenant_id"), ScimEmail.user_id == bindparam("user_id")
    ),
)
LEAVE_GROUPS = Statement(
    "scim_members.leave_groups",
    delete(ScimMember).where(
        ScimMember.tenant_id == bindparam("tenant_id"), ScimMember.user_id == bindparam("user_id")
    ),
)


class PersonRow(Protocol):
    """A row of :data:`PEOPLE`; ``groups`` are ids and names."""

    ScimUser: ScimUser
    User: User
    Membership: Membership
    is_active: bool
    changed_at: datetime
    groups: list[tuple[str, str]] | None


class UserNameTaken(Conflict):
    """The person, or another one with the user name, is there already."""

    scim_type = "uniqueness"
    detail = "Another user of this directory has this userName."


class Managed(Conflict):
    """The person is there already."""

    scim_type = "uniqueness"
    detail = "A directory of this tenant has provisioned this user already."


CONFLICTS = {"uq_scim_users_user_name_key": UserNameTaken, "pk_scim_users": Managed}


@dataclass(frozen=True)
class Person:
    """What a directory says about a person. A name or activity of None was not sent."""

    user_name: str
    external_id: str
    email: str
    first_name: str | None
    last_name: str | None
    is_active: bool | None
    attributes: dict[str, Any]

    def check(self) -> None:
        """Raise ScimError for names that are empty or too long, too many emails, or too much."""
        if not self.user_name.strip():
            raise invalid_value("userName must not be empty.")
        check_length(userName=self.user_name, externalId=self.external_id)
        if len(self.attributes.get("emails") or ()) > MAX_EMAILS:
            raise invalid_value(f"A user has at most {MAX_EMAILS} emails.")
        if json_text.size(self.attributes) > MAX_ATTRIBUTES:
            raise invalid_value(f"A user has at most {MAX_ATTRIBUTES} bytes of JSON.")


def check_length(**texts: str) -> None:
    """Raise ScimError for a text that is too long for an index."""
    for name, text in texts.items():
        if len(text) > MAX_NAME or len(text.encode()) > MAX_BYTES:
            raise invalid_value(f"{name} has at most {MAX_NAME} characters and {MAX_BYTES} bytes.")


def create(connection: Connection, person: Person, *, actor: Actor) -> UUID:
    """Provision a person: link the user whom the directory means, or create one.

    The user is found by ``idp_user_id``, which is the externalId or the userName, else by the
    e-mail address. Returns the user's id. Raises ScimError and Conflict with ``uniqueness`` for a
    person who is provisioned already, and the errors of the services.
    """
    person.check()
    first_id = person.external_id or person.user_name
    found = FIND.first(
        tenant_id=connection.tenant_id,
        first_id=first_id,
        idp_user_ids=[first_id, person.user_name],
        email_key=email_key(person.email),
    )
    membership = record = None
    if found is None:
        user = users.create(
            connection.tenant_id,
            {
                "idp_user_id": first_id,
                "email": person.email,
                "first_name": person.first_name or "",
                "last_name": person.last_name or "",
            },
            actor=actor,
        )
    else:
        user = found.User
        membership = found.Membership if found.Membership.id else None
        record = found.ScimUser if found.ScimUser.id else None
    if record is not None and record.deleted_at is None:
        raise not_unique(Managed.detail)
    person = replace(person, attributes={"active": True, **person.attributes})
    stored = _store(connection, user.id, person, record)
    if found is not None:
        user = _change_profile(user, person, actor)
        changes.record_change(user, {}, changes.values_of(stored), actor=actor)
    _set_active(connection, user, membership, person.is_active is not False, actor)
    return user.id


def update(connection: Connection, found: PersonRow, person: Person, *, actor: Actor) -> None:
    """Make a person what the directory says now; ``found`` is a row of :data:`PEOPLE`.

    Raises RowChanged if another transaction has changed the person since then.
    """
    person.check()
    record = _lock(found)
    stored, _ = queries.update_row(
        ScimUser, record, _stored(connection, person), conflicts=CONFLICTS
    )
    _store_emails(record, record.attributes, person.attributes)
    user = _change_profile(found.User, person, actor)
    changes.record_change(user, changes.values_of(record), changes.values_of(stored), actor=actor)
    if person.is_active not in (None, found.is_active):
        membership = found.Membership if found.Membership.id else None
        _set_active(connection, found.User, membership, not found.is_active, actor)


def end(connection: Connection, found: PersonRow, *, actor: Actor) -> None:
    """Deprovision a person: end the membership, and leave a tombstone without personal data."""
    record = _lock(found)
    membership = found.Membership if found.Membership.id else None
    _set_active(connection, found.User, membership, False, actor)
    LEAVE_GROUPS.execute(tenant_id=connection.tenant_id, user_id=record.id)
    empty = {"user_name": "", "user_name_key": "", "external_id": "", "attributes": {}}
    values = {**empty, "has_mapped_role": False, "deleted_at": utcnow()}
    queries.update_row(ScimUser, record, values)
    _store_emails(record, record.attributes, {})
    changes.record_change(found.User, changes.names_of(record), {}, actor=actor)


def _lock(found: PersonRow) -> ScimUser:
    record: ScimUser = queries.lock_with(ScimUser, found.ScimUser.id)[0]
    if record.version != found.ScimUser.version or record.deleted_at is not None:
        raise RowChanged("scim_users")
    return record


def _store(
    connection: Connection, user_id: UUID, person: Person, record: ScimUser | None
) -> ScimUser:
    """Store what only SCIM knows and return it; a tombstone is used again."""
    values = _stored(connection, person)
    if record is None:
        key = {"tenant_id": connection.tenant_id, "id": user_id}
        stored = insert_row(ScimUser, {**key, **values}, conflicts=CONFLICTS)
    else:
        stored, _ = queries.update_row(ScimUser, record, values, conflicts=CONFLICTS)
    _store_emails(stored, record.attributes if record else {}, person.attributes)
    return stored


def _store_emails(record: ScimUser, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Replace the entries by which filters find the user's addresses, if they have changed."""
    key = {"tenant_id": record.tenant_id, "user_id": record.id}
    old, emails = before.get("emails") or (), after.get("emails") or ()
    if old == emails:
        return
    if old:
        DELETE_EMAILS.execute(**key)
    with writes() as w:
        for position, email in enumerate(emails):
            texts = {name: (email.get(name) or "").lower() for name in EMAIL_TEXTS}
            is_primary = email.get("primary") is True
            values = {**key, "position": position, **texts, "is_primary": is_primary}
            w.insert(ScimEmail, values)


def _stored(connection: Connection, person: Person) -> dict[str, object]:
    return {
        "connection_id": connection.id,
        "user_name": person.user_name,
        "user_name_key": email_key(person.user_name),
        "external_id": person.external_id,
        "attributes": person.attributes,
        "deleted_at": None,
    }


def _change_profile(user: User, person: Person, actor: Actor) -> User:
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
    return users.update(user.id, changed, actor=actor) if changed else user


def _set_active(
    connection: Connection, user: User, membership: Membership | None, is_active: bool, actor: Actor
) -> None:
    """Activate or end the membership; a person without one gets it with the default role."""
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

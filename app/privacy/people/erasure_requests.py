"""Erasing one user of one tenant, as clients request it.

The request deactivates the user. A job erases, because it may have to read large tables completely.
The user's row, memberships and index rows are deleted. In what else the tenant has, the person is
redacted: audit trail, contacts, the identity provider's membership and the events about it.

Nothing of another tenant is changed at the request of a tenant. What the platform stores about the
person (e-mail records, the provider's events, stored answers) is erased too, as ``flask users
erase`` does, if a platform credential asked for it and the person is in no other tenant, also not
as a contact.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from itertools import chain
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, delete, select, tuple_

from app.audit.service import record
from app.auth.models import PlatformAdmin
from app.auth.tenant_actors import is_of_tenant
from app.core.actors import Actor
from app.core.db import queries
from app.core.db.list_cursors import EPOCH
from app.core.db.queries import Change
from app.core.db.stalled import take_stalled
from app.core.db.writes import insert_row
from app.core.errors import Conflict
from app.core.jobs.queues import JOBS, logged_errors
from app.privacy.database import application
from app.privacy.mentions import Found, Reader
from app.privacy.people.find_person import get_person, people_to_erase
from app.privacy.people.person import Person
from app.privacy.people.person_rows import (
    CONTACTS,
    MEMBERSHIPS,
    OBJECTS,
    USERS,
    is_contact,
    tenant_column,
)
from app.privacy.people.removal import erase, find_mentions
from app.privacy.people.search_terms import TERMS
from app.scim.models import ScimUser
from app.users import service as users
from app.users.models import UserErasure

log = logging.getLogger(__name__)

ERASE_JOB = "app.privacy.jobs.erase_users"
ERASURES = UserErasure.__table__
_KEY = tuple_(ERASURES.c.tenant_id, ERASURES.c.user_id)
TAKE_STALLED = take_stalled(UserErasure, "worked_at", timedelta(seconds=60))


def request(user_id: UUID | str, *, actor: Actor) -> UserErasure:
    """Deactivate the user and queue the erasure.

    A second request changes nothing, unless it is the first by a platform credential. What a
    directory has sent about the user is deleted at once, and its connection no longer has the user.
    Raises NotFound, OwnerOnly and LastOwner.
    """
    leave_directory(queries.parse_id(user_id, "user"))
    user = users.update(user_id, {"is_active": False}, actor=actor)
    key = {"tenant_id": user.tenant_id, "user_id": user.id}
    erasure = queries.find_row(UserErasure, **key)
    if erasure is None or (actor.is_platform and not erasure.is_everywhere):
        queries.delete_where(UserErasure, **key)
        values = {**key, "requested_by": actor.id, "is_everywhere": actor.is_platform}
        values["worked_at"] = EPOCH  # it is due at once
        erasure = insert_row(UserErasure, values)
        change = Change({}, {"is_everywhere": actor.is_platform})
        record("user.erasure_requested", user, change, actor=actor)
    JOBS[ERASE_JOB].push()
    return erasure


def leave_directory(user_id: UUID) -> None:
    """Delete what a directory has sent about a user, whom it then no longer manages."""
    queries.delete_where(ScimUser, id=user_id)


def erase_requested(keys: Sequence[tuple[UUID, UUID]]) -> None:
    """Erase these users, each a tenant's id and a user's id, in a transaction each.

    The inbox is searched once for all of them. A request stays if the person has changed since, if
    events about the person wait or if an error occurs, so that a later job tries again.
    """
    with application() as connection:
        erasures = connection.execute(select(ERASURES).where(_KEY.in_(keys))).all()
        people = [_people_of(connection, erasure) for erasure in erasures]
        found = find_mentions(connection, list(chain(*people)))
    for erasure, person in zip(erasures, people, strict=True):
        user = {"user_id": str(erasure.user_id)}
        with logged_errors("erasure_failed", **user):
            try:
                with application() as connection:
                    _erase(connection, erasure, person, found)
            except Conflict as fault:
                log.info("erasure_postponed", extra={**user, "reason": fault.detail})


def _erase(connection: Connection, erasure: Any, people: Sequence[Person], found: Found) -> None:
    """Erase a user unless another worker does or did so, or the request has been replaced."""
    key = (erasure.tenant_id, erasure.user_id)
    locked = select(ERASURES).where(_KEY.in_([key])).with_for_update(skip_locked=True)
    row = connection.execute(locked).first()
    if row is None or row.requested_by != erasure.requested_by:
        return
    for person in people:
        reader = Reader(connection, lambda *_: None, found=found)
        erase(reader, person, actor=Actor(erasure.requested_by))
    for column in (TERMS.c.entity_id, MEMBERSHIPS.c.user_id, USERS.c.id):
        table = column.table
        own = (table.c.tenant_id == erasure.tenant_id) & (column == erasure.user_id)
        connection.execute(delete(table).where(own))  # the erasure's row goes with the user


def _people_of(connection: Connection, erasure: Any) -> list[Person]:
    """The person; only in the tenant, unless they are in no other and the platform asked."""
    is_user = (USERS.c.tenant_id == erasure.tenant_id) & (USERS.c.id == erasure.user_id)
    columns = USERS.c.idp_user_id, USERS.c.idp_org_id, is_of_tenant(USERS.c.created_by_user_id)
    subject, organization, is_own = connection.execute(select(*columns).where(is_user)).one()
    if erasure.is_everywhere and not is_own:
        people = people_to_erase(connection, subject)
        if not _is_elsewhere(connection, people, erasure.tenant_id, organization):
            return people
    return [get_person(connection, subject, only_in=erasure.tenant_id)]


def _is_elsewhere(
    connection: Connection, people: Sequence[Person], tenant_id: UUID, idp_org_id: str
) -> bool:
    """Whether the person is a user, a member or a contact of another tenant, or a superadmin."""
    subjects = list(people[-1].subjects)
    other = (OBJECTS.c.organization_id != idp_org_id) & OBJECTS.c.is_deleted.is_(False)
    membership = select(OBJECTS.c.object_id).where(OBJECTS.c.user_id.in_(subjects), other)
    admin = select(PlatformAdmin.subject).where(PlatformAdmin.subject.in_(subjects))
    contacts = [
        select(table.c.id).where(is_contact(table, people[-1]), tenant_column(table) != tenant_id)
        for table in CONTACTS
    ]
    return sum(len(person.users) for person in people) > 1 or any(
        connection.execute(found.limit(1)).first() for found in (membership, admin, *contacts)
    )

"""Erasing one user of one tenant, as clients request it.

The request deactivates the user. A job erases, because it may have to read large tables completely.
The user's row, memberships and index rows are deleted. In what else the tenant has, the person is
redacted: audit trail, contacts, the identity provider's membership and the events about it.

Nothing of another tenant is changed at the request of a tenant. What the platform stores about the
person (e-mail records, the provider's events, stored answers) is erased too, as ``flask users
erase`` does, if a platform credential asked for it and the person is in no other tenant.
"""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, bindparam, delete, select

from app.audit.service import record
from app.auth.models import PlatformAdmin
from app.core.actors import Actor
from app.core.db import queries
from app.core.db.queries import Change
from app.core.db.stalled import take_stalled
from app.core.db.statements import Statement
from app.core.db.writes import insert_row
from app.core.errors import Conflict
from app.core.jobs.queues import JOBS
from app.privacy.database import application
from app.privacy.erase import erase
from app.privacy.person import MEMBERSHIPS, OBJECTS, USERS, Person, get_person
from app.privacy.terms import TERMS
from app.scim.models import ScimUser
from app.users import service as users
from app.users.models import UserErasure

log = logging.getLogger(__name__)

ERASE_JOB = "app.privacy.jobs.erase_user"
ERASURES = UserErasure.__table__
TAKE_STALLED = take_stalled(UserErasure, "worked_at")
LEAVE_DIRECTORY = Statement(
    "scim_users.leave_directory", delete(ScimUser).where(ScimUser.id == bindparam("id"))
)


def request(user_id: UUID | str, *, actor: Actor) -> UserErasure:
    """Deactivate the user and queue the erasure; a second request queues it again.

    What a directory has sent about the user is deleted at once, and its connection no longer has
    the user. Raises NotFound, OwnerOnly and LastOwner.
    """
    leave_directory(queries.parse_id(user_id, "user"))
    user = users.update(user_id, {"is_active": False}, actor=actor)
    key = {"tenant_id": user.tenant_id, "user_id": user.id}
    erasure = queries.find_row(UserErasure, **key)
    if erasure is None:
        values = {**key, "requested_by": actor.id, "is_everywhere": actor.is_platform}
        erasure = insert_row(UserErasure, values)
        change = Change({}, {"is_everywhere": actor.is_platform})
        record("user.erasure_requested", user, change, actor=actor)
    JOBS[ERASE_JOB].push(str(user.tenant_id), str(user.id))
    return erasure


def leave_directory(user_id: UUID) -> None:
    """Delete what a directory has sent about a user, whom it then no longer manages."""
    LEAVE_DIRECTORY.execute(id=user_id)


def erase_requested(tenant_id: UUID, user_id: UUID) -> None:
    """Erase the user, in one transaction; does nothing where no erasure is requested.

    The request stays where the person changes meanwhile or events about them are to be applied, so
    that a later job tries again.
    """
    try:
        with application() as connection:
            is_it = (ERASURES.c.tenant_id == tenant_id) & (ERASURES.c.user_id == user_id)
            locked = select(ERASURES).where(is_it).with_for_update(skip_locked=True)
            erasure: Any = connection.execute(locked).first()
            if erasure is not None:
                _erase(connection, erasure)
    except Conflict as fault:
        log.info("erasure_postponed", extra={"user_id": str(user_id), "reason": fault.detail})


def _erase(connection: Connection, erasure: UserErasure) -> None:
    person = _person_of(connection, erasure)
    erase(connection, person, lambda *_: None, actor=Actor(erasure.requested_by))
    for column in (TERMS.c.entity_id, MEMBERSHIPS.c.user_id, USERS.c.id):
        table = column.table
        own = (table.c.tenant_id == erasure.tenant_id) & (column == erasure.user_id)
        connection.execute(delete(table).where(own))  # the erasure's row goes with the user


def _person_of(connection: Connection, erasure: UserErasure) -> Person:
    """The person; only in the tenant, unless they are in no other and the platform asked."""
    is_user = (USERS.c.tenant_id == erasure.tenant_id) & (USERS.c.id == erasure.user_id)
    user = connection.execute(select(USERS).where(is_user)).one()
    if erasure.is_everywhere:
        person = get_person(connection, user.idp_user_id)
        if not _is_elsewhere(connection, person, user.idp_org_id):
            return person
    return get_person(connection, user.idp_user_id, only_in=erasure.tenant_id)


def _is_elsewhere(connection: Connection, person: Person, idp_org_id: str) -> bool:
    """Whether the person is a user or a member of something else, or a superadmin."""
    subjects = list(person.subjects)
    other = (OBJECTS.c.organization_id != idp_org_id) & OBJECTS.c.is_deleted.is_(False)
    membership = select(OBJECTS.c.object_id).where(OBJECTS.c.user_id.in_(subjects), other)
    admin = select(PlatformAdmin.subject).where(PlatformAdmin.subject.in_(subjects))
    return len(person.users) > 1 or any(
        connection.execute(found.limit(1)).first() for found in (membership, admin)
    )

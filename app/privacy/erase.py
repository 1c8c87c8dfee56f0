"""Erasing a person: their personal data is removed from every table.

Their users and memberships remain as anonymous rows, and the audit trail and the event feed keep all
their rows. So they still show who did what to which row. A later event about the person stores them as a new one.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, text, update

from app.audit.models import AuditEvent
from app.auth.models import ApiKey, PlatformAdmin
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db.tenancy import PLATFORM_TENANT_ID
from app.core.errors import Conflict
from app.custom_fields.models import IndexRow
from app.events.models import OutboxEvent
from app.memberships.models import Membership
from app.privacy import mentions
from app.privacy.identifiers import ERASED
from app.privacy.mentions import ANSWERS, EVENTS, MAILS, Progress
from app.privacy.person import (
    CONTACTS,
    OBJECTS,
    USERS,
    Person,
    get_person,
    is_contact,
    of_subjects,
)
from app.privacy.redaction import redact_feed, redact_mails, redact_trail
from app.users.models import User
from app.webhooks.models import Status
from app.webhooks.providers.payloads import digest

MARGIN = timedelta(minutes=5)  # longer than any transaction that is open when the erasure begins
# A worker locks the row of the event that it applies, so it waits for this lock, or this for it.
STOP_INBOX = text("LOCK TABLE webhook_events IN EXCLUSIVE MODE")


def erase(
    connection: Connection, person: Person, progress: Progress, *, actor: Actor
) -> Counter[str]:
    """Erase the person; the number of rows changed or deleted in each table.

    ``connection`` is that of the tables' owner. The large tables are searched first, without a
    lock; then the inbox is locked, and the rows added since are searched. So nothing written
    meanwhile is missed. Raises Conflict where the person has changed meanwhile, or events about
    them are still to be applied.
    """
    done: Counter[str] = Counter()
    since = utcnow() - MARGIN
    _clear_mentions(connection, person, progress, done)
    connection.execute(STOP_INBOX)
    connection.execute(select(USERS.c.id).where(USERS.c.id.in_(person.user_ids)).with_for_update())
    if not all(person.covers(get_person(connection, one)) for one in _subjects(connection, person)):
        raise Conflict("The person has changed meanwhile; try again.")
    _clear_mentions(connection, person, progress, done, since=since)
    _clear_contacts(connection, person, done)
    _clear_rows(connection, person, done)
    _record(connection, person, done, actor)
    return done


def _clear_mentions(
    connection: Connection, person: Person, progress: Progress, done: Counter[str], **bounds: Any
) -> None:
    """Remove the person from the tables read completely; ``since`` limits this to newer rows."""
    for clear in (_redact_events, redact_trail, redact_feed, redact_mails, _delete_answers):
        clear(connection, person, progress, done, **bounds)


def _subjects(connection: Connection, person: Person) -> list[str]:
    chosen = select(USERS.c.idp_user_id).where(USERS.c.id.in_(person.user_ids)).distinct()
    return list(connection.scalars(chosen))


def _redact_events(
    connection: Connection, person: Person, progress: Progress, done: Counter[str], **bounds: Any
) -> None:
    """Remove the body of each event that is or may be about the person; its digest remains."""
    who = person.identifiers
    for row in list(mentions.inbox_rows(connection, who, progress, or_unreadable=True, **bounds)):
        if row.status == Status.PENDING.value:
            raise Conflict(
                "Webhook events about this person are still to be applied: run a worker"
                " (flask jobs worker), or wait until it has, and try again."
            )
        values: dict[str, Any] = {"body": None, "headers": {}, "detail": ""}
        values |= {name: who.redact(getattr(row, name)) for name in ("event_type", "request_id")}
        if row.status == Status.FAILED.value:
            values |= {"status": Status.IGNORED.value, "detail": "erased"}
        if mentions.has_own_key(row, who):
            values["external_id"] = digest(row.external_id.encode())
        connection.execute(update(EVENTS).where(EVENTS.c.id == row.id).values(values))
        done["webhook_events"] += 1


def _delete_answers(
    connection: Connection, person: Person, progress: Progress, done: Counter[str], **bounds: Any
) -> None:
    for row in list(mentions.answer_rows(connection, person.in_answers, progress, **bounds)):
        of_key = (ANSWERS.c.scope == row.scope) & (ANSWERS.c.key == row.key)
        _run(connection, delete(ANSWERS).where(of_key), done)


def _clear_rows(connection: Connection, person: Person, done: Counter[str]) -> None:
    """Make users and memberships anonymous; delete rows that are only about the person."""
    subjects, users = sorted(person.subjects), person.user_ids
    addresses = sorted(person.identifiers.addresses)
    for table, condition in (
        (IndexRow.__table__, IndexRow.entity_id.in_(users)),
        (OBJECTS, of_subjects(subjects)),
        (PlatformAdmin.__table__, PlatformAdmin.subject.in_(subjects)),
        *((table, func.lower(table.c.address).in_(addresses)) for table in MAILS),
    ):
        _run(connection, delete(table).where(condition), done)
    for user_id in users:
        values: dict[str, Any] = {"email": "", "first_name": "", "last_name": "", "meta_data": {}}
        values |= {"idp_user_id": f"erased:{user_id}", "is_active": False}
        _run(connection, _changed(USERS).where(USERS.c.id == user_id).values(values), done)
    table = Membership.__table__
    ended = _changed(table).values(idp_membership_id="", is_active=False)
    _run(connection, ended.where(table.c.user_id.in_(users)), done)
    _redact_superadmin(connection, subjects, done)


def _redact_superadmin(connection: Connection, subjects: list[str], done: Counter[str]) -> None:
    """Replace ``platform:<subject>``, the actor in rows that the person created or changed."""
    names = [f"platform:{subject}" for subject in subjects]
    for model in (User, Membership, ApiKey):
        for name in ("created_by_user_id", "updated_by_user_id"):
            column = model.__table__.c[name]
            values = {name: f"platform:{ERASED}"}
            _run(connection, update(model.__table__).where(column.in_(names)).values(values), done)


def _clear_contacts(connection: Connection, person: Person, done: Counter[str]) -> None:
    """Clear the contacts of companies that the person's address identifies."""
    for model, names in CONTACTS.items():
        table = model.__table__
        cleared = _changed(table).values(dict.fromkeys(names, ""))
        _run(connection, cleared.where(is_contact(table, names[0], person)), done)


def _changed(table: Any) -> Any:
    return update(table).values(version=table.c.version + 1, updated_at=utcnow())


def _run(connection: Connection, statement: Any, done: Counter[str]) -> None:
    rows = connection.execute(statement).rowcount
    if rows:
        done[statement.table.name] += rows


def _record(connection: Connection, person: Person, done: Counter[str], actor: Actor) -> None:
    """Add an audit row and an event about the erasure in each tenant of the person."""
    common = {"actor": actor.id, "before": {}, "after": {"rows": dict(done)}, "request_id": ""}
    event = {**common, "type": "user.erased", "is_platform_actor": actor.is_operator}
    for user in connection.execute(select(USERS).where(USERS.c.id.in_(person.user_ids))):
        values = {**event, "tenant_id": user.tenant_id, "data": dict(user._mapping)}
        connection.execute(insert(OutboxEvent).values(values))
    places = [(tenant_id, str(user_id)) for tenant_id, user_id in person.users]
    for tenant_id, target_id in places or [(PLATFORM_TENANT_ID, ERASED)]:
        row = {"tenant_id": tenant_id, "target_id": target_id, "target_type": "user"}
        connection.execute(insert(AuditEvent).values(**common, **row, action="user.erased"))

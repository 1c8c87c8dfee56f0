"""Erasing a person: their personal data is removed from every table.

Their users and memberships remain as anonymous rows, and the audit trail and the event feed keep
all their rows. So they still show who did what to which row. A later event about the person stores
them as a new one.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

from sqlalchemy import ARRAY, Connection, Text, cast, delete, func, insert, select, text, update

from app.audit.models import AuditEvent
from app.auth.models import ApiKey, ConsoleSession, ConsoleTicket, PlatformAdmin
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db.tenancy import PLATFORM_TENANT_ID
from app.core.errors import Conflict
from app.custom_fields.models import IndexRow
from app.emails.models import EmailEventRecord, EmailMessage
from app.events.models import EventFeed, OutboxEvent
from app.imports.models import Import
from app.memberships.models import Membership
from app.privacy import mentions
from app.privacy.identifiers import ERASED
from app.privacy.mentions import ANSWERS, EVENTS, FAULTS, IMPORTS, MAILS, PIECES, Progress
from app.privacy.person import (
    CONTACTS,
    OBJECTS,
    USERS,
    Person,
    get_person,
    is_contact,
    of_subjects,
    tenant_column,
)
from app.privacy.redaction import redact_feed, redact_mails, redact_trail
from app.privacy.terms import rewrite_terms
from app.scim.models import ScimConnection, ScimUser
from app.search.models import EntityType
from app.subscriptions.models import PlanAssignment
from app.tenants.models import TenantDeletion
from app.users.models import User, UserErasure
from app.webhook_endpoints.models import WebhookEndpoint
from app.webhooks.models import Status
from app.webhooks.providers.payloads import digest

ALL_ROWS = 2**31 - 1
ACTORS: dict[Any, tuple[str, ...]] = {
    **dict.fromkeys(
        (User, Membership, ApiKey, ScimConnection, WebhookEndpoint),
        ("created_by_user_id", "updated_by_user_id"),
    ),
    Import: ("created_by_user_id",),
    **dict.fromkeys((TenantDeletion, UserErasure), ("requested_by",)),
    PlanAssignment: ("created_by",),
}
"""Columns that name the actor of a request."""
SESSIONS = (ConsoleSession.__table__, ConsoleTicket.__table__)
MARGIN = timedelta(minutes=5)  # longer than any transaction that is open when the erasure begins
# A worker locks the row of the event that it applies, so it waits for this lock, or this for it.
STOP_INBOX = text("LOCK TABLE webhook_events, imports IN EXCLUSIVE MODE")


def erase(
    connection: Connection, person: Person, progress: Progress, *, actor: Actor
) -> Counter[str]:
    """Erase the person; the number of rows changed or deleted in each table.

    ``connection`` is that of the tables' owner, or that of the application's role if an erasure of
    the person is recorded (:mod:`app.privacy.erasure`). The large tables are searched first, without a
    lock; then the inbox, the imports and the event feed are locked, and the rows added since are
    searched. So nothing written meanwhile is missed. Raises Conflict where the person has changed
    meanwhile, or events about them or any import are still to be applied.
    """
    done: Counter[str] = Counter()
    since = utcnow() - MARGIN
    position = connection.scalar(select(EventFeed.last_position)) or 0
    _clear_mentions(connection, person, progress, done)
    redact_feed(connection, person, progress, done)
    connection.execute(STOP_INBOX)
    connection.execute(select(USERS.c.id).where(USERS.c.id.in_(person.user_ids)).with_for_update())
    now = [get_person(connection, one, person.only_in) for one in _subjects(connection, person)]
    if not all(map(person.covers, now)):
        raise Conflict("The person has changed meanwhile; try again.")
    _clear_mentions(connection, person, progress, done, since=since)
    redact_feed(connection, person, progress, done, after=position)
    _clear_imports(connection, person, progress, done)
    _clear_contacts(connection, person, done)
    _clear_rows(connection, person, done)
    _record(connection, person, done, actor)
    return done


def _clear_mentions(
    connection: Connection, person: Person, progress: Progress, done: Counter[str], **bounds: Any
) -> None:
    """Remove the person from the tables read completely; ``since`` limits this to newer rows."""
    of_platform = [] if person.only_in else [redact_mails]
    for clear in (_redact_events, redact_trail, *of_platform, _delete_answers):
        clear(connection, person, progress, done, **bounds)


def _subjects(connection: Connection, person: Person) -> list[str]:
    chosen = select(USERS.c.idp_user_id).where(USERS.c.id.in_(person.user_ids)).distinct()
    return list(connection.scalars(chosen))


def _redact_events(
    connection: Connection, person: Person, progress: Progress, done: Counter[str], **bounds: Any
) -> None:
    """Remove the body of each event that is or may be about the person; its digest remains."""
    who = person.identifiers
    bounds |= {"or_unreadable": person.only_in is None, "organization": person.organization}
    for row in list(mentions.inbox_rows(connection, who, progress, **bounds)):
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


def _clear_imports(
    connection: Connection, person: Person, progress: Progress, done: Counter[str]
) -> None:
    """Redact the faults that mention the person, and delete the files of all failed imports.

    In one tenant only its faults are redacted; the files go within a week.
    """
    unfinished = select(func.count()).where(IMPORTS.c.finished_at.is_(None))
    if connection.scalar(unfinished):
        raise Conflict("An import is still to be applied: wait until it has ended, and try again.")
    who = person.identifiers
    for row in list(mentions.fault_rows(connection, who, progress)):
        if person.only_in is not None and row.idp_org_id != person.organization:
            continue
        errors = [{**who.redact(entry), "input": None} for entry in row.errors]
        values = {"name": who.redact(row.name), "errors": errors}
        of_line = (FAULTS.c.import_id == row.import_id) & (FAULTS.c.line == row.line)
        _run(connection, update(FAULTS).where(of_line).values(values), done)
    if person.only_in is None:
        _run(connection, delete(PIECES), done)


def _clear_rows(connection: Connection, person: Person, done: Counter[str]) -> None:
    """Make users and memberships anonymous; delete rows that are only about the person."""
    subjects, users = sorted(person.subjects), person.user_ids
    for table, condition in (
        (IndexRow.__table__, IndexRow.entity_id.in_(users)),
        (ScimUser.__table__, ScimUser.id.in_(users)),
        (OBJECTS, of_subjects(subjects, person.organization)),
        *((table, _is_signed_in(table, person)) for table in SESSIONS),
    ):
        _run(connection, delete(table).where(condition), done)
    for user_id in users:
        values: dict[str, Any] = {"email": "", "email_key": "", "first_name": "", "last_name": ""}
        values |= {"meta_data": {}, "idp_user_id": f"erased:{user_id}", "is_active": False}
        _run(connection, _changed(USERS).where(USERS.c.id == user_id).values(values), done)
    rewrite_terms(connection, EntityType.USER, users)
    table = Membership.__table__
    ended = _changed(table).values(idp_membership_id="", is_active=False)
    _run(connection, ended.where(table.c.user_id.in_(users)), done)
    if person.only_in is None:
        _clear_platform(connection, person, done)


def _is_signed_in(table: Any, person: Person) -> Any:
    """The condition of the person's sessions of the console; in one tenant only those there."""
    condition = table.c.subject.in_(sorted(person.subjects))
    if person.only_in is not None:
        condition &= table.c.org_id == person.organization
    return condition


def _clear_platform(connection: Connection, person: Person, done: Counter[str]) -> None:
    """Delete what the platform stores about the person."""
    subjects, addresses = sorted(person.subjects), sorted(person.identifiers.addresses)
    messages = EmailMessage.__table__.c
    to_person = func.lower(messages.address).in_(addresses)
    message_ids = connection.scalars(select(messages.id).where(to_person)).all()
    for table, condition in (
        (PlatformAdmin.__table__, PlatformAdmin.subject.in_(subjects)),
        *((table, func.lower(table.c.address).in_(addresses)) for table in MAILS),
    ):
        if table is not EmailEventRecord.__table__:
            _run(connection, delete(table).where(condition), done)
    rewrite_terms(connection, EntityType.EMAIL_MESSAGE, message_ids)
    found = func.delete_email_events(None, cast(addresses, ARRAY(Text)), ALL_ROWS)
    if count := connection.scalar(select(found)):
        done["email_events"] += count
    _redact_superadmin(connection, subjects, done)


def _redact_superadmin(connection: Connection, subjects: list[str], done: Counter[str]) -> None:
    """Replace ``platform:<subject>``, the actor in rows that the person created or changed."""
    names = [f"platform:{subject}" for subject in subjects]
    for model, columns in ACTORS.items():
        for name in columns:
            column = model.__table__.c[name]
            values = {name: f"platform:{ERASED}"}
            _run(connection, update(model.__table__).where(column.in_(names)).values(values), done)


def _clear_contacts(connection: Connection, person: Person, done: Counter[str]) -> None:
    """Clear the contacts of companies that the person's address identifies."""
    for model, names in CONTACTS.items():
        table = model.__table__
        of_person = is_contact(table, names[0], person)
        if person.only_in is not None:
            of_person &= table.c[tenant_column(model)] == person.only_in
        ids = connection.scalars(select(table.c.id).where(of_person)).all()
        cleared = _changed(table).values(dict.fromkeys(names, ""))
        _run(connection, cleared.where(of_person), done)
        rewrite_terms(connection, EntityType(table.name.removesuffix("s")), ids)


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

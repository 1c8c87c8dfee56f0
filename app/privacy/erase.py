"""Erasing a person: what they are is forgotten in every table, that they were there stays.

Their rows stay as anonymous ones and the audit trail keeps its structure, so that what others did
to them, or they to others, can still be told. What an event says of them after that is new.
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
from app.emails.models import EmailEventRecord, EmailMessage, Suppression
from app.memberships.models import Membership
from app.privacy import scans, trail
from app.privacy.contacts import CONTACTS, is_contact
from app.privacy.mentions import ERASED
from app.privacy.person import OBJECTS, Person, get_person, of_subjects
from app.privacy.scans import Progress
from app.users.models import User
from app.webhooks.models import Status, WebhookEvent
from app.webhooks.providers.payloads import digest

SLACK = timedelta(minutes=5)  # longer than any transaction that was open when the first look began
# Whoever applies an event holds its row, so with this nobody does, and nobody begins to.
STOP_INBOX = text("LOCK TABLE webhook_events IN EXCLUSIVE MODE")
EVENTS, USERS = WebhookEvent.__table__, User.__table__


def erase(session: Connection, person: Person, progress: Progress, *, actor: Actor) -> Counter[str]:
    """Erase everything; how many rows of each table were changed or deleted.

    ``session`` is the tables' owner's. Nothing that happens meanwhile escapes: what takes long is
    looked through first, and what came in the meantime again, while the inbox stands still.
    Raises Conflict where the person has changed meanwhile, or events about them are still to be
    applied.
    """
    done: Counter[str] = Counter()
    since = utcnow() - SLACK
    _forget_events(session, person, progress, done)
    trail.scrub(session, person, progress, done)
    session.execute(STOP_INBOX)
    session.execute(select(USERS.c.id).where(USERS.c.id.in_(person.user_ids)).with_for_update())
    if not all(person.covers(get_person(session, one)) for one in _subjects(session, person)):
        raise Conflict("The person has changed meanwhile; try again.")
    _forget_events(session, person, progress, done, since=since)
    trail.scrub(session, person, progress, done, since=since)
    _clear_contacts(session, person, done)
    _clear_rows(session, person, done)
    _record(session, person, done, actor)
    return done


def _subjects(session: Connection, person: Person) -> list[str]:
    chosen = select(USERS.c.idp_user_id).where(USERS.c.id.in_(person.user_ids)).distinct()
    return list(session.scalars(chosen))


def _forget_events(
    session: Connection, person: Person, progress: Progress, done: Counter[str], **bounds: Any
) -> None:
    """Reduce the events about the person to their digests."""
    for row in list(scans.inbox_rows(session, person.identifiers, progress, **bounds)):
        if row.status == Status.PENDING.value:
            raise Conflict(
                "Webhook events about this person are still to be applied: run a worker"
                " (flask jobs worker), or wait until it has, and try again."
            )
        values: dict[str, Any] = {"body": None, "headers": {}, "detail": ""}
        if row.status == Status.FAILED.value:
            values |= {"status": Status.IGNORED.value, "detail": "erased"}
        if scans.has_own_key(row, person.identifiers):
            values["external_id"] = digest(row.external_id.encode())
        session.execute(update(EVENTS).where(EVENTS.c.id == row.id).values(values))
        done["webhook_events"] += 1


def _clear_rows(session: Connection, person: Person, done: Counter[str]) -> None:
    """Make the person's rows anonymous; delete what is about nobody without them."""
    subjects, users = sorted(person.subjects), person.user_ids
    addresses = sorted(person.identifiers.addresses)
    for table, condition in (
        (IndexRow.__table__, IndexRow.entity_id.in_(users)),
        (OBJECTS, of_subjects(subjects)),
        (PlatformAdmin.__table__, PlatformAdmin.subject.in_(subjects)),
        *(
            (model.__table__, func.lower(model.address).in_(addresses))
            for model in (EmailEventRecord, EmailMessage, Suppression)
        ),
    ):
        _run(session, delete(table).where(condition), done)
    for row in list(scans.answer_rows(session, person.in_answers)):
        answers = scans.ANSWERS
        of_key = (answers.c.scope == row.scope) & (answers.c.key == row.key)
        _run(session, delete(answers).where(of_key), done)
    for user_id in users:
        values: dict[str, Any] = {"email": "", "first_name": "", "last_name": "", "meta_data": {}}
        values |= {"idp_user_id": f"erased:{user_id}", "is_active": False}
        _run(session, _changed(USERS).where(USERS.c.id == user_id).values(values), done)
    table = Membership.__table__
    ended = _changed(table).values(idp_membership_id="", is_active=False)
    _run(session, ended.where(table.c.user_id.in_(users)), done)
    _forget_superadmin(session, subjects, done)


def _forget_superadmin(session: Connection, subjects: list[str], done: Counter[str]) -> None:
    """Rows say ``platform:<subject>`` of who made and changed them."""
    names = [f"platform:{subject}" for subject in subjects]
    for model in (User, Membership, ApiKey):
        for name in ("created_by_user_id", "updated_by_user_id"):
            column = model.__table__.c[name]
            values = {name: f"platform:{ERASED}"}
            _run(session, update(model.__table__).where(column.in_(names)).values(values), done)


def _clear_contacts(session: Connection, person: Person, done: Counter[str]) -> None:
    """Where the person's address is a company's contact, the contact goes."""
    for model, names in CONTACTS.items():
        table = model.__table__
        cleared = _changed(table).values(dict.fromkeys(names, ""))
        _run(session, cleared.where(is_contact(table, names[0], person)), done)


def _changed(table: Any) -> Any:
    return update(table).values(version=table.c.version + 1, updated_at=utcnow())


def _run(session: Connection, statement: Any, done: Counter[str]) -> None:
    rows = session.execute(statement).rowcount
    if rows:
        done[statement.table.name] += rows


def _record(session: Connection, person: Person, done: Counter[str], actor: Actor) -> None:
    """Leave a row about the erasure itself, in each tenant."""
    common = {"actor": actor.id, "before": {}, "after": {"rows": dict(done)}, "request_id": ""}
    places = [(tenant_id, str(user_id)) for tenant_id, user_id in person.users]
    for tenant_id, target_id in places or [(PLATFORM_TENANT_ID, ERASED)]:
        row = {"tenant_id": tenant_id, "target_id": target_id, "target_type": "user"}
        session.execute(insert(AuditEvent).values(**common, **row, action="user.erased"))

"""Erasing a person: their personal data is removed from every table.

Their users and memberships remain as anonymous rows, and the audit trail and the event feed keep
all their rows. So they still show who did what to which row. A later event about the person stores
them as a new one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import product

from sqlalchemy import (
    ARRAY,
    JSON,
    Connection,
    Table,
    Text,
    Update,
    cast,
    delete,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB
from uuid_utils.compat import uuid7

from app.audit.models import ERASED, AuditEvent
from app.auth.models import ConsoleSession, ConsoleTicket, PlatformAdmin
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db.tenancy import PLATFORM_TENANT_ID
from app.core.errors import Conflict
from app.custom_fields.models import IndexRow
from app.emails.models import EmailMessage, Suppression
from app.events.models import EventFeed, OutboxEvent
from app.extensions import db
from app.inbox.models import Status
from app.inbox.providers.payloads import digest
from app.privacy.identifiers import ERASED_ACTOR, joined
from app.privacy.mentions import (
    ANSWERS,
    EVENTS,
    FAULTS,
    IMPORTS,
    PIECES,
    Found,
    Reader,
    has_own_key,
)
from app.privacy.people import redaction
from app.privacy.people.find_person import get_person
from app.privacy.people.person import Person
from app.privacy.people.person_rows import (
    CONTACTS,
    INVITATIONS,
    MEMBERSHIPS,
    OBJECTS,
    REQUESTS,
    USERS,
    in_answers,
    is_contact,
    is_invited,
    is_object_of,
    is_request_of,
)
from app.privacy.people.redaction import Erasure, redact_feed, redact_mails, redact_trail
from app.privacy.people.search_terms import rewrite_terms
from app.roles.models import RoleAssignment
from app.roles.role_assignments import ROLE_KEY, shown
from app.scim.models import ENTERPRISE, ScimUser
from app.search.models import EntityType
from app.users.models import ERASED_SUBJECT

ALL_ROWS = 2**31 - 1
NOBODY = {
    (PLATFORM_TENANT_ID, ERASED): None
}  # whom the audit row of a person without users is about
ACTOR_COLUMNS = ("created_by_user_id", "updated_by_user_id", "created_by", "requested_by")
DIRECTORY, MANAGER = ScimUser.__table__, (ENTERPRISE, "manager")
ROLES = RoleAssignment.__table__
SESSIONS = (ConsoleSession.__table__, ConsoleTicket.__table__)
MARGIN = timedelta(minutes=5)  # longer than any transaction that is open when the erasure begins
# A worker locks the row of what it applies, so it waits for this lock, or this for it.
STOP_WORK = text("LOCK TABLE webhook_events, imports, rewinds IN EXCLUSIVE MODE")


def find_mentions(connection: Connection, people: Sequence[Person]) -> Found:
    """Search the inbox and the stored answers once, for several people."""
    reader, since = Reader(connection, lambda *_: None), utcnow() - MARGIN
    anybody = joined([person.identifiers for person in people])
    or_unreadable = any(person.only_in is None for person in people)
    events = [row.id for row in reader.inbox_rows(anybody, or_unreadable=or_unreadable)]
    answers = reader.answer_rows(joined([in_answers(connection, person) for person in people]))
    return Found(since, events, [(row.scope, row.key) for row in answers])


def erase(reader: Reader, person: Person, *, actor: Actor) -> Counter[str]:
    """Erase the person; the number of rows changed or deleted in each table.

    Its connection is that of the tables' owner, or that of the application's role if an erasure of
    the person is recorded (:mod:`app.privacy.people.erasure_requests`). The large tables are searched first,
    without a lock; then the inbox, the imports, the rewinds, the person's rows and the event feed are locked, and
    the rows added since are searched. So nothing written meanwhile is missed. Raises Conflict where the person has
    changed meanwhile, or events or an import about them are still to be applied.
    """
    connection, found = reader.connection, reader.found
    since = utcnow() - MARGIN if found is None else found.since
    work = Erasure(person, reader, Counter())
    position = connection.scalar(select(EventFeed.last_position)) or 0
    _clear_mentions(work)
    redact_feed(work)
    connection.execute(STOP_WORK)
    _lock_rows(connection, person)
    _check_unchanged(work)
    _clear_mentions(replace(work, reader=replace(reader, since=since, found=None)))
    redaction.redact_bases(work)
    redact_feed(work, after=position)
    _clear_imports(work)
    _clear_contacts(work)
    _end_roles(work, actor)
    _clear_rows(work)
    if person.only_in is None:
        _clear_platform(work)
    _record(work, actor)
    return work.done


def _lock_rows(connection: Connection, person: Person) -> None:
    """Wait for transactions that change rows about the person: what they record is found then."""
    for table in (DIRECTORY, USERS):  # in the order in which a directory's request locks them
        rows = select(table.c.id).where(table.c.id.in_(person.user_ids))
        connection.execute(rows.with_for_update())
    connection.execute(select(INVITATIONS.c.id).where(is_invited(person)).with_for_update())
    for table in CONTACTS:  # other transactions may add rows that refer to these
        rows = select(table.c.id).where(is_contact(table, person))
        connection.execute(rows.with_for_update(key_share=True))


def _check_unchanged(work: Erasure) -> None:
    """Raise Conflict where the person has further rows, ids or addresses now."""
    person = work.person
    chosen = select(USERS.c.idp_user_id).where(USERS.c.id.in_(person.user_ids)).distinct()
    for subject in work.connection.scalars(chosen).all():
        now = get_person(work.connection, subject, person.only_in, is_trusted=person.is_trusted)
        if not person.covers(now):
            raise Conflict("The person has changed meanwhile; try again.")


def _clear_mentions(work: Erasure) -> None:
    """Remove the person from the tables that are read completely."""
    _redact_events(work)
    redact_trail(work)
    if work.person.only_in is None:
        redact_mails(work)
    for row in list(work.reader.answer_rows(in_answers(work.connection, work.person))):
        of_key = (ANSWERS.c.scope == row.scope) & (ANSWERS.c.key == row.key)
        work.run("idempotency_keys", delete(ANSWERS).where(of_key))


def _redact_events(work: Erasure) -> None:
    """Remove the body of each event that is or may be about the person; its digest remains."""
    person, who = work.person, work.person.identifiers
    rows = work.reader.inbox_rows(
        who, or_unreadable=person.only_in is None, organization=person.organization
    )
    for row in list(rows):
        if row.status == Status.PENDING.value:
            raise Conflict(
                "Webhook events about this person are still to be applied: run a worker"
                " (flask jobs worker), or wait until it has, and try again."
            )
        values: dict[str, object] = {"body": None, "headers": {}, "detail": ""}
        values |= {name: who.redact(getattr(row, name)) for name in ("event_type", "request_id")}
        if row.status in (Status.FAILED.value, Status.WAITING_TENANT.value):
            values |= {"status": Status.IGNORED.value, "detail": "erased"}
        if has_own_key(row, who):
            values["external_id"] = digest(row.external_id.encode())
        work.run("webhook_events", update(EVENTS).where(EVENTS.c.id == row.id).values(values))


def _clear_imports(work: Erasure) -> None:
    """Redact the faults that mention the person, and delete the files of all failed imports.

    In one tenant only its faults are redacted; the files go within a week.
    """
    if work.reader.has_open_import(work.person.identifiers):
        raise Conflict(
            "An import with lines about this person is still to be applied: wait until it has"
            " ended, and try again."
        )
    person, who = work.person, work.person.identifiers
    for row in list(work.reader.fault_rows(who)):
        if person.only_in is not None and row.idp_org_id != person.organization:
            continue
        errors = [{**who.redact(entry), "input": None} for entry in row.errors]
        values = {"name": who.redact(row.name, "id"), "errors": errors}
        of_line = (FAULTS.c.import_id == row.import_id) & (FAULTS.c.line == row.line)
        work.run("import_faults", update(FAULTS).where(of_line).values(values))
    if person.only_in is None:
        ended = select(IMPORTS.c.id).where(IMPORTS.c.finished_at.is_not(None))
        work.run("import_pieces", delete(PIECES).where(PIECES.c.import_id.in_(ended)))


def _clear_contacts(work: Erasure) -> None:
    """Clear the contacts of companies that the person's address identifies."""
    person = work.person
    for table, names in CONTACTS.items():
        of_person = is_contact(table, person)
        ids = work.connection.scalars(select(table.c.id).where(of_person)).all()
        work.run(table.name, _change(table, dict.fromkeys(names, "")).where(of_person))
        if (kind := table.name.removesuffix("s")) in tuple(EntityType):
            rewrite_terms(work.connection, EntityType(kind), ids)


def _clear_rows(work: Erasure) -> None:
    """Make users and memberships anonymous; delete rows that are only about the person."""
    person, users = work.person, work.person.user_ids
    subjects = sorted(person.subjects)
    for table, condition in (
        (IndexRow.__table__, IndexRow.entity_id.in_(users)),
        (DIRECTORY, DIRECTORY.c.id.in_(users)),
        (INVITATIONS, is_invited(person)),
        (OBJECTS, is_object_of(person)),
        (REQUESTS, is_request_of(subjects, person.only_in)),
    ):
        work.run(table.name, delete(table).where(condition))
    tenants, names = {one for one, _ in person.users}, {*map(str, users), *person.identifiers.ids}
    is_manager = DIRECTORY.c.attributes[(*MANAGER, "value")].as_string().in_(names)
    rest = cast(DIRECTORY.c.attributes, JSONB).op("#-")(cast(list(MANAGER), ARRAY(Text)))
    without = _change(DIRECTORY, {"attributes": cast(rest, JSON)})
    work.run("scim_users", without.where(DIRECTORY.c.tenant_id.in_(tenants), is_manager))
    for table in SESSIONS:
        sessions = delete(table).where(table.c.subject.in_(subjects))
        if person.only_in is not None:
            sessions = sessions.where(table.c.org_id == person.organization)
        work.run(table.name, sessions)
    empty = {"email": "", "email_key": "", "first_name": "", "last_name": "", "meta_data": {}}
    for user_id in users:
        values = {**empty, "idp_user_id": f"{ERASED_SUBJECT}{user_id}", "is_active": False}
        work.run("users", _change(USERS, values).where(USERS.c.id == user_id))
    rewrite_terms(work.connection, EntityType.USER, users)
    ended = _change(MEMBERSHIPS, {"idp_membership_id": "", "is_active": False})
    work.run("memberships", ended.where(MEMBERSHIPS.c.user_id.in_(users)))


def _clear_platform(work: Erasure) -> None:
    """Delete what the platform stores about the person.

    The actor ``platform:<subject>`` is replaced in rows that the person created or changed.
    """
    subjects, addresses = sorted(work.person.subjects), sorted(work.person.identifiers.addresses)
    messages = EmailMessage.__table__
    to_person = func.lower(messages.c.address).in_(addresses)
    message_ids = work.connection.scalars(select(messages.c.id).where(to_person)).all()
    admins = delete(PlatformAdmin.__table__).where(PlatformAdmin.subject.in_(subjects))
    work.run("platform_admins", admins)
    for table in (messages, Suppression.__table__):
        to_person = func.lower(table.c.address).in_(addresses)
        work.run(table.name, delete(table).where(to_person))
    rewrite_terms(work.connection, EntityType.EMAIL_MESSAGE, message_ids)
    found = func.delete_email_events(None, cast(addresses, ARRAY(Text)), ALL_ROWS)
    if count := work.connection.scalar(select(found)):
        work.done["email_events"] += count
    actors = sorted(work.person.identifiers.actors)
    for table, name in product(db.metadata.sorted_tables, ACTOR_COLUMNS):
        if name in table.c:
            changed = update(table).where(table.c[name].in_(actors))
            work.run(table.name, changed.values({name: ERASED_ACTOR}))


def _change(table: Table, values: Mapping[str, object]) -> Update:
    return update(table).values(version=table.c.version + 1, updated_at=utcnow(), **values)


def _end_roles(work: Erasure, actor: Actor) -> None:
    """Delete the roles assigned to the person, each with an audit row and an event."""
    of_person = ROLES.c.membership_id.in_([row_id for _, row_id in work.person.memberships])
    ended = delete(ROLES).where(of_person).returning(*ROLES.c, ROLE_KEY)
    for row in work.connection.execute(ended).all():
        work.done["role_assignments"] += 1
        data = work.person.identifiers.redact(vars(shown(row, row.role)))
        place = (row.tenant_id, "role_assignment", str(row.id))
        _add_event(work, actor, "role_assignment.deleted", place, data=data, before=data)


def _record(work: Erasure, actor: Actor) -> None:
    """Add an audit row and an event about the erasure in each tenant of the person."""
    found = work.connection.execute(select(USERS).where(USERS.c.id.in_(work.person.user_ids)))
    rows: dict[tuple[object, str], dict[str, object] | None] = {
        (row.tenant_id, str(row.id)): dict(row._mapping) for row in found
    }
    for (tenant_id, user_id), data in (rows or NOBODY).items():
        place = (tenant_id, "user", user_id)
        _add_event(work, actor, "user.erased", place, data=data, after={"rows": dict(work.done)})


def _add_event(
    work: Erasure,
    actor: Actor,
    action: str,
    place: tuple[object, str, str],
    *,
    data: dict[str, object] | None,
    before: dict[str, object] | None = None,
    after: dict[str, object] | None = None,
) -> None:
    """Add an audit row, and an event with ``data``. ``place``: the tenant, and the target's kind and id."""
    tenant_id, kind, target_id = place
    common = {
        "tenant_id": tenant_id,
        "id": uuid7(),
        "actor": actor.id,
        "before": before or {},
        "after": after or {},
        "request_id": "",
    }
    row = {"target_id": target_id, "target_type": kind, "action": action}
    work.connection.execute(insert(AuditEvent).values(**common, **row))
    if data is not None:
        event = {"type": action, "is_platform_actor": actor.is_operator, "data": data}
        work.connection.execute(insert(OutboxEvent).values(**common, **event))

"""Everything that is stored about a person, table by table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlalchemy import ColumnElement, Connection, Row, Table, select

from app.auth.models import ConsoleSession, ConsoleTicket, PlatformAdmin
from app.custom_fields.models import IndexRow
from app.privacy import mentions
from app.privacy.export_rows import Rows, Tables, mail_rows
from app.privacy.identifiers import Identifiers
from app.privacy.mentions import IMPORTS, Progress, Reader, Targets
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
    targets_of,
)
from app.privacy.people.search_terms import TERMS
from app.roles.models import RoleAssignment
from app.scim.models import ScimEmail, ScimMember, ScimUser
from app.users.models import UserErasure
from app.webhooks.deliveries.models import WebhookDelivery

ROLES = RoleAssignment.__table__


def of_person(connection: Connection, person: Person, progress: Progress) -> Tables:
    """The rows of each table that are about a person."""
    reader = Reader(connection, progress)
    who, users, subjects = in_answers(connection, person), person.user_ids, person.subjects
    targets = targets_of(connection, person)
    in_tenants = TERMS.c.tenant_id.in_([tenant_id for tenant_id, _ in person.users])
    found_by_index: tuple[tuple[Table, ColumnElement[bool]], ...] = (
        (USERS, USERS.c.id.in_(users)),
        (INVITATIONS, is_invited(person)),
        (MEMBERSHIPS, MEMBERSHIPS.c.user_id.in_(users)),
        (ROLES, ROLES.c.membership_id.in_([row_id for _, row_id in person.memberships])),
        (UserErasure.__table__, UserErasure.user_id.in_(users)),
        (IndexRow.__table__, IndexRow.entity_id.in_(users)),
        (ScimUser.__table__, ScimUser.id.in_(users)),
        (ScimEmail.__table__, ScimEmail.user_id.in_(users)),
        (ScimMember.__table__, ScimMember.user_id.in_(users)),
        (REQUESTS, is_request_of(subjects)),
        (TERMS, in_tenants & TERMS.c.entity_id.in_(users)),
        (PlatformAdmin.__table__, PlatformAdmin.subject.in_(subjects)),
        (ConsoleSession.__table__, ConsoleSession.subject.in_(subjects)),
        (ConsoleTicket.__table__, ConsoleTicket.subject.in_(subjects)),
    )
    contacts = {
        table: select(*(table.c[name] for name in ("id", *names))).where(is_contact(table, person))
        for table, names in CONTACTS.items()
    }
    made_by_person = IMPORTS.c.created_by_user_id.in_([f"platform:{one}" for one in subjects])
    return {
        **{
            table.name: partial(reader.rows, select(table).where(condition))
            for table, condition in found_by_index
        },
        **{table.name: partial(reader.rows, chosen) for table, chosen in contacts.items()},
        "identity_objects": partial(reader.rows, select(OBJECTS).where(is_object_of(person))),
        **mail_rows(reader, sorted(person.identifiers.addresses)),
        "webhook_events": partial(reader.inbox_rows, person.identifiers),
        "idempotency_keys": partial(reader.answer_rows, who),
        "imports": partial(reader.rows, select(IMPORTS).where(made_by_person)),
        "import_faults": partial(reader.fault_rows, person.identifiers),
        "import_pieces": partial(reader.piece_rows, person.identifiers),
        "audit_events": partial(_trail, reader, who, targets),
        **{table.name: partial(_events, reader, table, who, targets) for table in mentions.FEED},
        "webhook_deliveries": partial(_deliveries, reader, who, targets),
    }


def _trail(reader: Reader, who: Identifiers, targets: Targets) -> Rows:
    for row in reader.audit_rows(who, targets):
        is_own = row.target_id in targets.get(row.target_type, ())
        yield _naming(row, ("before", "after"), who, is_own=is_own)


def _events(reader: Reader, table: Table, who: Identifiers, targets: Targets) -> Rows:
    for row in reader.feed_rows(table, who, targets):
        is_own = mentions.is_about(row, targets)
        yield _naming(row, ("before", "after", "data"), who, is_own=is_own)


def _deliveries(reader: Reader, who: Identifiers, targets: Targets) -> Rows:
    """The deliveries of events about the person's own rows, with what the endpoints answered."""
    found = reader.feed_rows(mentions.PLACED, who, targets)
    events = [row.id for row in found if mentions.is_about(row, targets)]
    chosen = select(WebhookDelivery.__table__).where(WebhookDelivery.event_id.in_(events))
    return reader.rows(chosen)


def _naming(row: Row, sides: Sequence[str], who: Identifiers, *, is_own: bool) -> dict[str, object]:
    """The row; of one that is not the person's own only those values that name the person."""
    if is_own:
        return dict(row._mapping)
    named = {
        side: {
            name: value
            for name, value in (getattr(row, side) or {}).items()
            if who.are_in({name: value})
        }
        for side in sides
    }
    return {**row._mapping, **named}

"""Everything that is stored about a person or a tenant, table by table."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Table,
    and_,
    cast,
    func,
    or_,
    select,
    union,
)
from sqlalchemy.dialects import postgresql

from app.auth.models import ConsoleSession, ConsoleTicket, PlatformAdmin
from app.core.json_text import plain
from app.custom_fields.models import IndexRow
from app.extensions import db
from app.identity_sync.store import Kind
from app.privacy import mentions
from app.privacy.identifiers import ANY_ID, Identifiers
from app.privacy.mentions import AUDIT, IMPORTS, Progress, Reader, Targets
from app.privacy.person import (
    CONTACTS,
    MEMBERSHIPS,
    OBJECTS,
    TENANTS,
    USERS,
    Person,
    contact_address,
    is_contact,
    of_subjects,
    targets_of,
    tenant_column,
)
from app.privacy.terms import TERMS
from app.scim.models import ScimEmail, ScimMember, ScimUser
from app.users.models import UserErasure
from app.webhooks.deliveries.models import WebhookDelivery
from app.webhooks.endpoints.models import WebhookEndpointState

Rows = Iterable[Row | Mapping[str, object]]
Tables = Mapping[str, Callable[[], Rows]]
"""For each table a function that reads its rows."""

ENDPOINT_STATES = WebhookEndpointState.__table__  # secrets, and nothing else to show
SECRET = frozenset({"digest", "old_digest", "replay_key"})
"""Columns that are not exported, because only an attacker could use them."""


def of_person(connection: Connection, person: Person, progress: Progress) -> Tables:
    """The rows of each table that are about a person."""
    reader = Reader(connection, progress)
    who, users, subjects = person.in_answers, person.user_ids, person.subjects
    targets = targets_of(connection, person)
    in_tenants = TERMS.c.tenant_id.in_([tenant_id for tenant_id, _ in person.users])
    found_by_index: tuple[tuple[Table, ColumnElement[bool]], ...] = (
        (USERS, USERS.c.id.in_(users)),
        (MEMBERSHIPS, MEMBERSHIPS.c.user_id.in_(users)),
        (UserErasure.__table__, UserErasure.user_id.in_(users)),
        (IndexRow.__table__, IndexRow.entity_id.in_(users)),
        (ScimUser.__table__, ScimUser.id.in_(users)),
        (ScimEmail.__table__, ScimEmail.user_id.in_(users)),
        (ScimMember.__table__, ScimMember.user_id.in_(users)),
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
        "identity_objects": partial(reader.rows, select(OBJECTS).where(of_subjects(subjects))),
        **_mails(reader, sorted(person.identifiers.addresses)),
        "webhook_events": partial(reader.inbox_rows, person.identifiers),
        "idempotency_keys": partial(reader.answer_rows, who),
        "imports": partial(reader.rows, select(IMPORTS).where(made_by_person)),
        "import_faults": partial(reader.fault_rows, person.identifiers),
        "import_pieces": partial(reader.piece_rows, person.identifiers),
        "audit_events": partial(_trail, reader, who, targets),
        **{table.name: partial(_events, reader, table, who, targets) for table in mentions.FEED},
        "webhook_deliveries": partial(_deliveries, reader, who, targets),
    }


def of_tenant(connection: Connection, tenant_id: UUID, progress: Progress) -> Tables:
    """The rows of each table that are about a tenant, and about the addresses of its people."""
    reader = Reader(connection, progress)
    org_id = connection.scalars(select(TENANTS.c.idp_org_id).where(TENANTS.c.id == tenant_id)).one()
    who = _organization(connection, tenant_id, org_id)
    owned = {
        name: partial(reader.rows, select(table).where(table.c.tenant_id == tenant_id))
        for name, table in sorted(db.metadata.tables.items())
        if "tenant_id" in table.c and table is not ENDPOINT_STATES
    }
    answers = replace(who, ids=who.ids | {str(tenant_id)})
    return {
        "tenants": partial(reader.rows, select(TENANTS).where(TENANTS.c.id == tenant_id)),
        **owned,
        "identity_objects": partial(reader.rows, select(OBJECTS).where(_of_organization(org_id))),
        **_mails(reader, _addresses(tenant_id)),
        "webhook_events": partial(reader.inbox_rows, who),
        "idempotency_keys": partial(reader.answer_rows, answers),
        "import_faults": partial(reader.fault_rows, who),
        "import_pieces": partial(reader.piece_rows, who),
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


def _organization(connection: Connection, tenant_id: UUID, org_id: str) -> Identifiers:
    """The ids and addresses of the organization and its people."""
    subjects = connection.scalars(select(USERS.c.idp_user_id).where(USERS.c.tenant_id == tenant_id))
    members = connection.scalars(
        select(OBJECTS.c.user_id).where(OBJECTS.c.organization_id == org_id)
    )
    ids = {org_id, *subjects, *(one for one in members if one)}
    addresses = frozenset(connection.scalars(_addresses(tenant_id)))
    return Identifiers(frozenset(ids), addresses, fields=ANY_ID)


def _addresses(tenant_id: UUID) -> Select[tuple[str]]:
    """A SELECT of every address that a user or a contact of the tenant has or had."""
    of_users = (AUDIT.c.tenant_id == tenant_id) & (AUDIT.c.target_type == "user")
    sides = [cast(side, postgresql.JSON) for side in (AUDIT.c.before, AUDIT.c.after)]
    found = union(
        select(func.lower(USERS.c.email).label("address")).where(USERS.c.tenant_id == tenant_id),
        *(select(func.lower(side["email"].astext)).where(of_users) for side in sides),
        *(
            select(contact_address(table)).where(tenant_column(table) == tenant_id)
            for table in CONTACTS
        ),
    ).subquery()
    return select(found.c.address).where(found.c.address != "")


def _of_organization(org_id: str) -> ColumnElement[bool]:
    """The condition on identity objects: the organization, its memberships and their people."""
    people = select(OBJECTS.c.user_id).where(OBJECTS.c.organization_id == org_id)
    return or_(
        and_(OBJECTS.c.kind == Kind.ORGANIZATION.value, OBJECTS.c.object_id == org_id),
        OBJECTS.c.organization_id == org_id,
        and_(OBJECTS.c.kind == Kind.USER.value, OBJECTS.c.object_id.in_(people)),
    )


def _mails(
    reader: Reader, addresses: Sequence[str] | Select[tuple[str]]
) -> dict[str, Callable[[], Rows]]:
    return {
        table.name: partial(
            reader.rows, select(table).where(func.lower(table.c.address).in_(addresses))
        )
        for table in mentions.MAILS
    }


def as_json(row: Row | Mapping[str, object]) -> dict[str, object]:
    """A row as values of JSON; bytes that are not UTF-8 are encoded in base 64."""
    values = row._mapping if isinstance(row, Row) else row
    return {name: _plain(value) for name, value in values.items() if name not in SECRET}


def _plain(value: object) -> object:
    match value:
        case datetime() | UUID():
            return plain(value)
        case Decimal():
            return str(value)
        case bytes() | memoryview():
            return _text(bytes(value))
    return value


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"base64:{b64encode(value).decode()}"

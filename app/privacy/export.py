"""Everything that is stored about a person or a tenant, table by table."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, Select, Table, and_, cast, func, or_, select, union
from sqlalchemy.dialects import postgresql

from app.auth.models import ConsoleSession, ConsoleTicket, PlatformAdmin
from app.core.json_text import plain
from app.custom_fields.models import IndexRow
from app.extensions import db
from app.identity_sync.store import Kind
from app.privacy import mentions
from app.privacy.identifiers import Identifiers
from app.privacy.mentions import Progress
from app.privacy.person import (
    CONTACTS,
    MEMBERSHIPS,
    OBJECTS,
    USERS,
    Person,
    contact_targets,
    is_contact,
    of_subjects,
    tenant_column,
)
from app.scim.models import ScimEmail, ScimMember, ScimUser
from app.search.models import SearchTerm
from app.tenants.models import Tenant
from app.users.models import UserErasure
from app.webhook_deliveries.models import WebhookDelivery
from app.webhook_endpoints.models import WebhookEndpointState

Tables = Mapping[str, Callable[[], Iterable[Any]]]
"""For each table a function that reads its rows."""

TENANTS, ERASURES = Tenant.__table__, UserErasure.__table__
SCIM_USERS, SCIM_MEMBERS = ScimUser.__table__, ScimMember.__table__
SCIM_EMAILS = ScimEmail.__table__
ENDPOINT_STATES = WebhookEndpointState.__table__  # secrets, and nothing else to show
SECRET = frozenset({"digest", "old_digest", "replay_key"})
"""Columns that are not exported, because only an attacker could use them."""


def of_person(connection: Connection, person: Person, progress: Progress) -> Tables:
    """The rows of each table that are about a person."""
    who, users = person.identifiers, person.user_ids
    targets = {"user": [str(one) for one in users], **contact_targets(connection, person)}
    contacts = {
        model.__tablename__: _reader(
            connection,
            select(*(model.__table__.c[name] for name in ("id", *names))).where(
                is_contact(model.__table__, names[0], person)
            ),
        )
        for model, names in CONTACTS.items()
    }
    return {
        "users": _reader(connection, select(USERS).where(USERS.c.id.in_(users))),
        "memberships": _reader(
            connection, select(MEMBERSHIPS).where(MEMBERSHIPS.c.user_id.in_(users))
        ),
        "user_erasures": _reader(connection, select(ERASURES).where(ERASURES.c.user_id.in_(users))),
        "custom_field_index_rows": _reader(
            connection, select(IndexRow.__table__).where(IndexRow.entity_id.in_(users))
        ),
        "scim_users": _reader(connection, select(SCIM_USERS).where(SCIM_USERS.c.id.in_(users))),
        "scim_emails": _reader(
            connection, select(SCIM_EMAILS).where(SCIM_EMAILS.c.user_id.in_(users))
        ),
        "scim_members": _reader(
            connection, select(SCIM_MEMBERS).where(SCIM_MEMBERS.c.user_id.in_(users))
        ),
        "search_terms": _reader(connection, _terms(person)),
        "platform_admins": _reader(
            connection,
            select(PlatformAdmin.__table__).where(PlatformAdmin.subject.in_(person.subjects)),
        ),
        **{
            model.__tablename__: _reader(
                connection,
                select(*(column for column in model.__table__.c if column.name != "digest")).where(
                    model.subject.in_(person.subjects)
                ),
            )
            for model in (ConsoleSession, ConsoleTicket)
        },
        **contacts,
        "identity_objects": _reader(
            connection, select(OBJECTS).where(of_subjects(person.subjects))
        ),
        **_mails(connection, sorted(who.addresses)),
        "webhook_events": lambda: mentions.inbox_rows(connection, who, progress),
        "idempotency_keys": lambda: mentions.answer_rows(connection, person.in_answers, progress),
        "imports": _reader(connection, select(mentions.IMPORTS).where(_made_by(person))),
        **_imports(connection, who, progress),
        "audit_events": lambda: _trail(connection, person, targets, progress),
        **{
            table.name: partial(_events, connection, table, person, targets, progress)
            for table in mentions.FEED
        },
        "webhook_deliveries": lambda: _deliveries(connection, person, targets, progress),
    }


def of_tenant(connection: Connection, tenant_id: UUID, progress: Progress) -> Tables:
    """The rows of each table that are about a tenant, and about the addresses of its people."""
    org_id = connection.scalars(select(TENANTS.c.idp_org_id).where(TENANTS.c.id == tenant_id)).one()
    who = _organization(connection, tenant_id, org_id)
    owned = {
        name: _reader(connection, select(table).where(table.c.tenant_id == tenant_id))
        for name, table in sorted(db.metadata.tables.items())
        if "tenant_id" in table.c and table is not ENDPOINT_STATES
    }
    answers = Identifiers(who.ids | {str(tenant_id)}, who.addresses)
    return {
        "tenants": _reader(connection, select(TENANTS).where(TENANTS.c.id == tenant_id)),
        **owned,
        "identity_objects": _reader(connection, select(OBJECTS).where(_of_organization(org_id))),
        **_mails(connection, _addresses(tenant_id)),
        "webhook_events": lambda: mentions.inbox_rows(connection, who, progress),
        "idempotency_keys": lambda: mentions.answer_rows(connection, answers, progress),
        **_imports(connection, who, progress),
    }


def _terms(person: Person) -> Select[Any]:
    table = SearchTerm.__table__
    return select(table).where(
        table.c.tenant_id.in_([tenant_id for tenant_id, _ in person.users]),
        table.c.entity_id.in_(person.user_ids),
    )


def _trail(
    connection: Connection, person: Person, targets: Mapping[str, list[str]], progress: Progress
) -> Iterator[dict[str, Any]]:
    """The audit rows of the person's own rows; of other rows only the values that name them."""
    who = person.in_answers
    for row in mentions.audit_rows(connection, who, progress, targets=targets):
        values = dict(row._mapping)
        if row.target_id not in targets.get(row.target_type, ()):
            values |= {side: _naming(values[side], who) for side in ("before", "after")}
        yield values


def _events(
    connection: Connection,
    table: Table,
    person: Person,
    targets: Mapping[str, list[str]],
    progress: Progress,
) -> Iterator[dict[str, Any]]:
    """The same for events."""
    who = person.in_answers
    for row in mentions.feed_rows(connection, table, who, progress, targets=targets):
        values = dict(row._mapping)
        if not mentions.is_about(row, targets):
            sides = ("before", "after", "data")
            values |= {side: _naming(values[side] or {}, who) for side in sides}
        yield values


def _deliveries(
    connection: Connection,
    person: Person,
    targets: Mapping[str, list[str]],
    progress: Progress,
) -> Iterable[Any]:
    """The deliveries of events about the person's own rows, with what the endpoints answered."""
    found = mentions.feed_rows(
        connection, mentions.PLACED, person.in_answers, progress, targets=targets
    )
    events = [row.id for row in found if mentions.is_about(row, targets)]
    deliveries = WebhookDelivery.__table__
    return mentions.streamed(
        connection, select(deliveries).where(deliveries.c.event_id.in_(events))
    )


def _naming(values: Mapping[str, Any], who: Identifiers) -> dict[str, Any]:
    return {name: value for name, value in values.items() if who.are_in(value)}


def _organization(connection: Connection, tenant_id: UUID, org_id: str) -> Identifiers:
    """The ids and addresses of the organization and its people."""
    subjects = connection.scalars(select(USERS.c.idp_user_id).where(USERS.c.tenant_id == tenant_id))
    members = connection.scalars(
        select(OBJECTS.c.user_id).where(OBJECTS.c.organization_id == org_id)
    )
    ids = {org_id, *subjects, *(one for one in members if one)}
    return Identifiers(frozenset(ids), frozenset(connection.scalars(_addresses(tenant_id))))


def _addresses(tenant_id: UUID) -> Any:
    """A SELECT of every address that a user or a contact of the tenant has or had."""
    audit = mentions.AUDIT
    of_users = (audit.c.tenant_id == tenant_id) & (audit.c.target_type == "user")
    found = union(
        select(func.lower(USERS.c.email).label("address")).where(USERS.c.tenant_id == tenant_id),
        *(select(func.lower(side["email"].astext)).where(of_users) for side in _sides()),
        *(
            select(func.lower(model.__table__.c[names[0]])).where(
                model.__table__.c[tenant_column(model)] == tenant_id
            )
            for model, names in CONTACTS.items()
        ),
    ).subquery()
    return select(found.c.address).where(found.c.address != "")


def _sides() -> list[Any]:
    return [
        cast(side, postgresql.JSON) for side in (mentions.AUDIT.c.before, mentions.AUDIT.c.after)
    ]


def _of_organization(org_id: str) -> Any:
    """The condition on identity objects: the organization, its memberships and their people."""
    people = select(OBJECTS.c.user_id).where(OBJECTS.c.organization_id == org_id)
    return or_(
        and_(OBJECTS.c.kind == Kind.ORGANIZATION.value, OBJECTS.c.object_id == org_id),
        OBJECTS.c.organization_id == org_id,
        and_(OBJECTS.c.kind == Kind.USER.value, OBJECTS.c.object_id.in_(people)),
    )


def _mails(connection: Connection, addresses: Any) -> dict[str, Callable[[], Iterable[Any]]]:
    return {
        table.name: _reader(
            connection, select(table).where(func.lower(table.c.address).in_(addresses))
        )
        for table in mentions.MAILS
    }


def _imports(
    connection: Connection, who: Identifiers, progress: Progress
) -> dict[str, Callable[[], Iterable[Any]]]:
    return {
        "import_faults": lambda: mentions.fault_rows(connection, who, progress),
        "import_pieces": lambda: mentions.piece_rows(connection, who, progress),
    }


def _made_by(person: Person) -> Any:
    """The condition on imports: the person started them as a platform superadmin."""
    names = [f"platform:{subject}" for subject in person.subjects]
    return mentions.IMPORTS.c.created_by_user_id.in_(names)


def _reader(connection: Connection, statement: Select[Any]) -> Callable[[], Iterable[Any]]:
    return lambda: mentions.streamed(connection, statement)


def as_json(row: Row | Mapping[str, Any]) -> dict[str, Any]:
    """A row as values of JSON; bytes that are not UTF-8 are encoded in base 64."""
    values = row._mapping if isinstance(row, Row) else row
    return {name: _plain(value) for name, value in values.items() if name not in SECRET}


def _plain(value: Any) -> Any:
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

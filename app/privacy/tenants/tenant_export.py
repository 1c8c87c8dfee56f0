"""Everything that is stored about a tenant, table by table."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Select, and_, cast, func, or_, select, union
from sqlalchemy.dialects import postgresql

from app.extensions import db
from app.identity_sync.store import Kind
from app.log_streams.models import LogStreamProgress
from app.privacy.export_rows import Tables, mail_rows
from app.privacy.identifiers import ANY_ID, Identifiers
from app.privacy.mentions import AUDIT, Progress, Reader
from app.privacy.people.person_rows import (
    CONTACTS,
    INVITATIONS,
    OBJECTS,
    TENANTS,
    USERS,
    contact_address,
    tenant_column,
)
from app.tenants.models import TenantNotes
from app.webhooks.endpoints.models import WebhookEndpointState

# Secrets, and nothing else to show; the platform's own notes.
HIDDEN = (WebhookEndpointState.__table__, LogStreamProgress.__table__, TenantNotes.__table__)


def of_tenant(connection: Connection, tenant_id: UUID, progress: Progress) -> Tables:
    """The rows of each table that are about a tenant, and about the addresses of its people."""
    reader = Reader(connection, progress)
    org_id = connection.scalars(select(TENANTS.c.idp_org_id).where(TENANTS.c.id == tenant_id)).one()
    who = _organization(connection, tenant_id, org_id)
    owned = {
        name: partial(
            reader.rows,
            select(table).where(table.c.tenant_id == tenant_id).order_by(*table.primary_key),
        )
        for name, table in sorted(db.metadata.tables.items())
        if "tenant_id" in table.c and table not in HIDDEN
    }
    answers = replace(who, ids=who.ids | {str(tenant_id)})
    return {
        "tenants": partial(reader.rows, select(TENANTS).where(TENANTS.c.id == tenant_id)),
        **owned,
        "identity_objects": partial(reader.rows, select(OBJECTS).where(_of_organization(org_id))),
        **mail_rows(reader, _addresses(tenant_id)),
        "webhook_events": partial(reader.inbox_rows, who),
        "idempotency_keys": partial(reader.answer_rows, answers),
        "import_faults": partial(reader.fault_rows, who),
        "import_pieces": partial(reader.piece_rows, who),
    }


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
    """A SELECT of every address that a user or a contact has or had, or that was invited."""
    of_users = (AUDIT.c.tenant_id == tenant_id) & (AUDIT.c.target_type == "user")
    sides = [cast(side, postgresql.JSON) for side in (AUDIT.c.before, AUDIT.c.after)]
    found = union(
        select(func.lower(USERS.c.email).label("address")).where(USERS.c.tenant_id == tenant_id),
        select(func.lower(INVITATIONS.c.email)).where(INVITATIONS.c.tenant_id == tenant_id),
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

"""The conditions that find the rows of a person, and of the companies whose contact they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Table, and_, func, or_, select, true, tuple_

from app.domains.models import JoinRequest
from app.identity_sync.models import IdentityObject
from app.identity_sync.store import Kind
from app.invitations.models import Invitation
from app.memberships.models import Membership
from app.privacy.identifiers import Identifiers
from app.privacy.people.person import Person
from app.setup_links.models import SetupLink
from app.subscriptions.models import Subscription
from app.tenants.models import Tenant
from app.users.emails import email_key
from app.users.models import User

USERS, MEMBERSHIPS = User.__table__, Membership.__table__
OBJECTS, TENANTS = IdentityObject.__table__, Tenant.__table__
INVITATIONS = Invitation.__table__
REQUESTS = JoinRequest.__table__
CONTACTS: dict[Table, tuple[str, ...]] = {
    TENANTS: ("primary_contact_email", "primary_contact_name", "primary_contact_phone"),
    Subscription.__table__: ("billing_email", "billing_contact_name", "billing_phone"),
    SetupLink.__table__: ("contact",),
}
"""Columns of a company's contact person, who is recognised by the address in the first one."""
CONTACT_FIELDS = frozenset(name for names in CONTACTS.values() for name in names)
CONTACT_ADDRESSES = [names[0] for names in CONTACTS.values()]
reported_email: ColumnElement[str] = OBJECTS.c.state[("attributes", "email", 0)].as_string()
"""An attribute of an identity object, in the form of :mod:`app.identity_sync.merge_state`."""


def contact_address(table: Table) -> ColumnElement[str]:
    """The address of the contact in a table of :data:`CONTACTS`, in lower case."""
    return func.lower(table.c[CONTACTS[table][0]])


def tenant_column(table: Table) -> ColumnElement[UUID]:
    """The column of a table of :data:`CONTACTS` that has the tenant's id."""
    return table.c["id" if table is TENANTS else "tenant_id"]


def is_contact(table: Table, person: Person) -> ColumnElement[bool]:
    """The condition that the row's contact has one of the person's addresses."""
    has_address = contact_address(table).in_(sorted(person.identifiers.addresses))
    if person.only_in is None:
        return has_address
    return has_address & (tenant_column(table) == person.only_in)


def is_invited(person: Person) -> ColumnElement[bool]:
    """The condition that an invitation is of the person's address, or that they accepted it."""
    keys = [email_key(address) for address in sorted(person.identifiers.addresses)]
    accepted = tuple_(INVITATIONS.c.tenant_id, INVITATIONS.c.user_id).in_(person.users)
    found = or_(INVITATIONS.c.email_key.in_(keys), accepted)
    return found & in_tenant(person.only_in, INVITATIONS)


def is_object_of(person: Person) -> ColumnElement[bool]:
    """The condition on identity objects: those of the person's ids, and invitations of an address."""
    invited = and_(
        OBJECTS.c.kind == Kind.INVITATION.value,
        func.lower(reported_email).in_(person.identifiers.addresses),
    )
    if person.organization is not None:
        invited &= OBJECTS.c.organization_id == person.organization
    return or_(of_subjects(person.subjects, person.organization), invited)


def of_subjects(subjects: Iterable[str], organization: str | None = None) -> ColumnElement[bool]:
    """The condition on identity objects: the person's own, and their memberships.

    With an ``organization`` only the memberships in it.
    """
    names = list(subjects)
    memberships = OBJECTS.c.user_id.in_(names)
    if organization is not None:
        return and_(memberships, OBJECTS.c.organization_id == organization)
    own = and_(OBJECTS.c.kind == Kind.USER.value, OBJECTS.c.object_id.in_(names))
    return or_(own, memberships)


def is_request_of(subjects: Iterable[str], only_in: UUID | None = None) -> ColumnElement[bool]:
    """The condition on join requests that they are the person's; with ``only_in`` in this tenant."""
    return and_(REQUESTS.c.idp_user_id.in_(list(subjects)), in_tenant(only_in, REQUESTS))


def targets_of(connection: Connection, person: Person) -> dict[str, list[str]]:
    """The ids of the person's rows, and of those whose contact they are, by audit target type."""
    targets = {
        "user": [str(user_id) for user_id in person.user_ids],
        "membership": [str(row_id) for _, row_id in person.memberships],
    }
    further = {
        INVITATIONS: is_invited(person),
        REQUESTS: is_request_of(person.subjects, person.only_in),
        **{table: is_contact(table, person) for table in CONTACTS},
    }
    for table, condition in further.items():
        ids = connection.scalars(select(table.c.id).where(condition))
        targets[table.name.removesuffix("s")] = [str(row_id) for row_id in ids]
    return targets


def in_answers(connection: Connection, person: Person) -> Identifiers:
    """The person's identifiers in the service's own answers: also the ids of :func:`targets_of`.

    Only these ids are of one tenant only.
    """
    own = frozenset(chain(*targets_of(connection, person).values()))
    if person.only_in is not None:
        return Identifiers(own, frozenset())
    return replace(person.identifiers, ids=person.identifiers.ids | own)


def in_tenant(tenant_id: UUID | None, table: Table = USERS) -> ColumnElement[bool]:
    """The condition on rows that they are of this tenant; always true if there is none."""
    return true() if tenant_id is None else table.c.tenant_id == tenant_id

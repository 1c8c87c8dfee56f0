"""A person: their rows in every tenant, and every id and address they have or had."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Row, Table, and_, func, or_, select, true, tuple_

from app.audit.models import AuditEvent
from app.auth.models import PlatformAdmin
from app.auth.tenant_actors import is_of_tenant
from app.core.db.queries import parse_id
from app.core.errors import AppError, Conflict, NotFound
from app.domains.models import JoinRequest
from app.identity_sync.models import IdentityObject
from app.identity_sync.store import Kind
from app.invitations.models import Invitation
from app.memberships.models import Membership
from app.privacy.identifiers import ERASED, SUBJECT, Identifiers
from app.setup_links.models import SetupLink
from app.subscriptions.models import Subscription
from app.tenants.models import Tenant
from app.users.emails import email_key
from app.users.models import User

USERS, MEMBERSHIPS, AUDIT = User.__table__, Membership.__table__, AuditEvent.__table__
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
_reported_email: ColumnElement[str] = OBJECTS.c.state[("attributes", "email", 0)].as_string()
"""An attribute of an identity object, in the form of :mod:`app.identity_sync.merge_state`."""


class PersonNotFound(AppError):
    """No person has this id, e-mail address or ``idp_user_id``."""

    status = 404


@dataclass(frozen=True)
class Person:
    """A person with their ``idp_user_id`` (``subjects``; several if it was changed).

    ``users`` and ``memberships`` are pairs of a tenant's id and a row's id. ``only_in``: only what
    this tenant has is meant, and ``organization`` is its ``idp_org_id``. ``is_trusted``: without
    what tenants have said, such as the ids and addresses in ``distrusted``.
    """

    subjects: frozenset[str]
    users: tuple[tuple[UUID, UUID], ...]
    memberships: tuple[tuple[UUID, UUID], ...]
    identifiers: Identifiers
    only_in: UUID | None = None
    organization: str | None = None
    is_trusted: bool = False
    distrusted: frozenset[str] = frozenset()

    @property
    def user_ids(self) -> list[UUID]:
        return [user_id for _, user_id in self.users]

    def covers(self, other: Person) -> bool:
        """Whether all that is known of ``other`` is known here."""
        return (
            set(other.users) <= set(self.users)
            and set(other.memberships) <= set(self.memberships)
            and other.identifiers.ids <= self.identifiers.ids | self.distrusted
            and other.identifiers.addresses <= self.identifiers.addresses | self.distrusted
        )

    @property
    def in_rows(self) -> Identifiers:
        """What names the person in our own rows, where ``id`` and ``user_id`` are not a provider's.

        The id of somebody else's membership may be equal to one of theirs.
        """
        return replace(self.identifiers, ids=self.subjects, fields=SUBJECT)


def find_subject(connection: Connection, named: str, tenant_id: UUID | None = None) -> str:
    """The ``idp_user_id`` of the person with this id, e-mail address or ``idp_user_id``.

    Without ``tenant_id`` it also finds people who are known only from the identity provider's
    events. An address that only invitations have is its own ``idp_user_id``. Raises PersonNotFound,
    and Conflict where several people match.
    """
    matches = [USERS.c.email_key == email_key(named), USERS.c.idp_user_id == named]
    with suppress(NotFound):
        matches.append(USERS.c.id == parse_id(named, "user"))
    users = select(USERS.c.idp_user_id).where(or_(*matches)).distinct()
    if tenant_id is not None:
        users = users.where(USERS.c.tenant_id == tenant_id)
    found = set(connection.scalars(users))
    if not found:
        is_named = or_(
            REQUESTS.c.idp_user_id == named, func.lower(REQUESTS.c.email) == named.lower()
        )
        requests = select(REQUESTS.c.idp_user_id).where(is_named, _in_tenant(tenant_id, REQUESTS))
        found = set(connection.scalars(requests.distinct()))
    if not found and tenant_id is None:
        is_named = or_(OBJECTS.c.object_id == named, _reported_email == named)
        objects = select(OBJECTS.c.object_id).where(OBJECTS.c.kind == Kind.USER.value, is_named)
        found = set(connection.scalars(objects.distinct()))
    if not found:
        found = _invited(connection, named, tenant_id)
    if not found:
        raise PersonNotFound(f"There is nobody called {named}.")
    if len(found) > 1:
        raise Conflict(f"Several people are called {named}: name one by id.")
    return str(found.pop())


def people_to_erase(connection: Connection, subject: str) -> list[Person]:
    """The person in each tenant that has made its user itself, and then everywhere else.

    The last one is absent where nothing but these tenants knows the person.
    """
    made = is_of_tenant(USERS.c.created_by_user_id) & (USERS.c.idp_user_id == subject)
    tenants = connection.scalars(select(USERS.c.tenant_id).where(made)).all()
    own = [get_person(connection, subject, only_in) for only_in in tenants]
    whole, everywhere = (get_person(connection, subject, is_trusted=one) for one in (False, True))
    distrusted = whole.identifiers.ids | whole.identifiers.addresses
    everywhere = replace(everywhere, distrusted=distrusted)
    admin = select(PlatformAdmin.subject).where(PlatformAdmin.subject == subject)
    known = select(OBJECTS.c.object_id).where(of_subjects([subject]))
    asked = select(REQUESTS.c.idp_user_id).where(is_request_of([subject]))
    is_known = everywhere.users or any(map(connection.scalar, (admin, known, asked)))
    return [*own, everywhere] if is_known or not own else own


def get_person(
    connection: Connection, subject: str, only_in: UUID | None = None, *, is_trusted: bool = False
) -> Person:
    """The person with everything that names them, now or earlier; only in one tenant if given.

    With ``is_trusted`` without the users that tenants and their directories have made, and without
    the ids and addresses that these have given to others: they may be somebody else's.
    """
    named = select(USERS).where(USERS.c.idp_user_id == subject, _in_tenant(only_in))
    if is_trusted:
        named = named.where(~is_of_tenant(USERS.c.created_by_user_id))
    users = connection.execute(named.order_by(USERS.c.tenant_id)).all()
    organization = users[0].idp_org_id if users and only_in is not None else None
    keys = tuple((row.tenant_id, row.id) for row in users)
    memberships = connection.execute(
        select(MEMBERSHIPS).where(MEMBERSHIPS.c.user_id.in_([row.id for row in users]))
    ).all()
    values = partial(_values, connection, is_trusted=is_trusted)
    subjects = frozenset({subject, *values("user", users, "idp_user_id")})
    objects = connection.execute(
        select(OBJECTS.c.kind, OBJECTS.c.object_id, _reported_email.label("email")).where(
            of_subjects(subjects, organization)
        )
    ).all()
    reported = {row.email for row in objects if row.kind == Kind.USER.value}
    requests = select(REQUESTS.c.email).where(is_request_of(subjects, only_in))
    reported |= set(connection.scalars(requests)) | _invited(connection, subject, only_in)
    addresses = {one.lower() for one in reported | values("user", users, "email") if one}
    ids = values("membership", memberships, "idp_membership_id")
    ids |= subjects | {row.object_id for row in objects}
    if only_in is not None:  # a tenant may choose any text, such as its organization's id
        ids -= {organization}
    actors = {f"platform:{one}" for one in subjects} if only_in is None else set()
    return Person(
        subjects=subjects,
        users=keys,
        memberships=tuple((row.tenant_id, row.id) for row in memberships),
        identifiers=Identifiers(
            frozenset(ids),
            frozenset(addresses - _of_others(connection, addresses, subjects, only_in)),
            frozenset(actors),
        ),
        only_in=only_in,
        organization=organization,
        is_trusted=is_trusted,
    )


def contact_address(table: Table) -> ColumnElement[str]:
    """The address of the contact in a table of :data:`CONTACTS`, in lower case."""
    return func.lower(table.c[CONTACTS[table][0]])


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
    return found & _in_tenant(person.only_in, INVITATIONS)


def tenant_column(table: Table) -> ColumnElement[UUID]:
    """The column of a table of :data:`CONTACTS` that has the tenant's id."""
    return table.c["id" if table is TENANTS else "tenant_id"]


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
    """What names the person in the service's own answers: also the ids of :func:`targets_of`.

    Only these ids are of one tenant only.
    """
    own = frozenset(chain(*targets_of(connection, person).values()))
    if person.only_in is not None:
        return Identifiers(own, frozenset())
    return replace(person.identifiers, ids=person.identifiers.ids | own)


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


def is_object_of(person: Person) -> ColumnElement[bool]:
    """The condition on identity objects: those of the person's ids, and invitations of an address."""
    invited = and_(
        OBJECTS.c.kind == Kind.INVITATION.value,
        func.lower(_reported_email).in_(person.identifiers.addresses),
    )
    if person.organization is not None:
        invited &= OBJECTS.c.organization_id == person.organization
    return or_(of_subjects(person.subjects, person.organization), invited)


def is_request_of(subjects: Iterable[str], only_in: UUID | None = None) -> ColumnElement[bool]:
    """The condition on join requests that they are the person's; with ``only_in`` in this tenant."""
    return and_(REQUESTS.c.idp_user_id.in_(list(subjects)), _in_tenant(only_in, REQUESTS))


def _values(
    connection: Connection, kind: str, rows: Iterable[Row], name: str, *, is_trusted: bool
) -> set[str]:
    """The values of a column of these rows, now and as the audit trail recorded them.

    With ``is_trusted`` without those that only tenants have written.
    """
    trail = select(
        AUDIT.c.before, AUDIT.c.after, is_of_tenant(AUDIT.c.actor).label("is_of_tenant")
    ).where(AUDIT.c.target_type == kind, AUDIT.c.target_id.in_([str(row.id) for row in rows]))
    changes = connection.execute(trail).all()
    found = {getattr(row, name) for row in rows} | {row.before.get(name) for row in changes}
    by_tenants = {row.after.get(name) for row in changes if row.is_of_tenant}
    by_others = {row.after.get(name) for row in changes if not row.is_of_tenant}
    if is_trusted:
        found -= by_tenants - by_others
        by_tenants = set()
    return {one for one in found | by_tenants | by_others if isinstance(one, str)} - {"", ERASED}


def _invited(connection: Connection, named: str, only_in: UUID | None) -> set[str]:
    """This address, if an invitation has it."""
    found = select(INVITATIONS.c.id).where(
        INVITATIONS.c.email_key == email_key(named), _in_tenant(only_in, INVITATIONS)
    )
    return set() if connection.execute(found.limit(1)).first() is None else {named.lower()}


def _of_others(
    connection: Connection, addresses: set[str], subjects: Iterable[str], only_in: UUID | None
) -> set[str]:
    """Those of the addresses that another user has now."""
    others = select(func.lower(USERS.c.email)).where(
        func.lower(USERS.c.email).in_(addresses),
        USERS.c.idp_user_id.not_in(list(subjects)),
        _in_tenant(only_in),
    )
    return set(connection.scalars(others))


def _in_tenant(tenant_id: UUID | None, table: Table = USERS) -> ColumnElement[bool]:
    """The condition on rows that they are of this tenant; always true without one."""
    return true() if tenant_id is None else table.c.tenant_id == tenant_id

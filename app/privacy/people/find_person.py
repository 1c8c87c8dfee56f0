"""Finding a person by an id or an address, with everything that names them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from uuid import UUID

from sqlalchemy import Connection, Row, func, or_, select

from app.audit.models import ERASED, AuditEvent
from app.auth.models import PlatformAdmin
from app.auth.tenant_actors import is_of_tenant
from app.core.db.queries import parse_id
from app.core.errors import Conflict, NotFound
from app.identity_sync.store import Kind
from app.privacy.identifiers import Identifiers
from app.privacy.people.person import Person, PersonNotFound
from app.privacy.people.person_rows import (
    INVITATIONS,
    MEMBERSHIPS,
    OBJECTS,
    REQUESTS,
    USERS,
    in_tenant,
    is_request_of,
    of_subjects,
    reported_email,
)
from app.users.emails import email_key

AUDIT = AuditEvent.__table__


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
        requests = select(REQUESTS.c.idp_user_id).where(is_named, in_tenant(tenant_id, REQUESTS))
        found = set(connection.scalars(requests.distinct()))
    if not found and tenant_id is None:
        is_named = or_(OBJECTS.c.object_id == named, reported_email == named)
        objects = select(OBJECTS.c.object_id).where(OBJECTS.c.kind == Kind.USER.value, is_named)
        found = set(connection.scalars(objects.distinct()))
    if not found:
        found = _invited(connection, named, tenant_id)
    if not found:
        raise PersonNotFound(f"There is nobody called {named}.")
    if len(found) > 1:
        advice = "add --tenant SLUG, or give" if tenant_id is None else "give"
        ids = ", ".join(sorted(found))
        raise Conflict(f"Several people are called {named}: {advice} one of the ids {ids}.")
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
    named = select(USERS).where(USERS.c.idp_user_id == subject, in_tenant(only_in))
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
        select(OBJECTS.c.kind, OBJECTS.c.object_id, reported_email.label("email")).where(
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


def _values(
    connection: Connection, kind: str, rows: Iterable[Row], name: str, *, is_trusted: bool
) -> set[str]:
    """The values of a column of these rows, now and as the audit trail recorded them.

    ``is_trusted`` excludes values that only tenants have written.
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
        INVITATIONS.c.email_key == email_key(named), in_tenant(only_in, INVITATIONS)
    )
    return set() if connection.execute(found.limit(1)).first() is None else {named.lower()}


def _of_others(
    connection: Connection, addresses: set[str], subjects: Iterable[str], only_in: UUID | None
) -> set[str]:
    """Those of the addresses that another user has now."""
    others = select(func.lower(USERS.c.email)).where(
        func.lower(USERS.c.email).in_(addresses),
        USERS.c.idp_user_id.not_in(list(subjects)),
        in_tenant(only_in),
    )
    return set(connection.scalars(others))

"""Who a person is: their rows in every tenant, and every id and address they have or had."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, Text, and_, cast, func, or_, select

from app.audit.models import AuditEvent
from app.core.errors import AppError, Conflict
from app.identity_sync.store import Kind
from app.memberships.models import Membership
from app.privacy.mentions import ERASED, Identifiers
from app.users.models import User
from app.webhooks.models import IdentityObject

USERS, MEMBERSHIPS, AUDIT = User.__table__, Membership.__table__, AuditEvent.__table__
OBJECTS = IdentityObject.__table__


class Nobody(AppError):
    """Nobody is called so."""

    status = 404


@dataclass(frozen=True)
class Person:
    """Somebody the identity provider knows by ``subjects`` (more than one if it was changed)."""

    subjects: frozenset[str]
    users: tuple[tuple[UUID, UUID], ...]
    memberships: tuple[tuple[UUID, UUID], ...]
    identifiers: Identifiers

    @property
    def user_ids(self) -> list[UUID]:
        return [user_id for _, user_id in self.users]

    def covers(self, other: Person) -> bool:
        """Whether ``other`` is known by nothing that is not known here."""
        return (
            set(other.users) <= set(self.users)
            and set(other.memberships) <= set(self.memberships)
            and other.identifiers.ids <= self.identifiers.ids
            and other.identifiers.addresses <= self.identifiers.addresses
        )

    @property
    def in_answers(self) -> Identifiers:
        """What names the person in the service's own answers: the ids of their rows too."""
        own = {str(row_id) for _, row_id in (*self.users, *self.memberships)}
        return Identifiers(self.identifiers.ids | own, self.identifiers.addresses)


def find_subject(session: Connection, named: str, tenant_id: UUID | None = None) -> str:
    """The ``idp_user_id`` of the person with this id, e-mail address or ``idp_user_id``.

    People whom only the identity provider's events have told of count too. Raises Nobody, and
    Conflict where several people are called so.
    """
    of_user = or_(
        USERS.c.email == named,
        USERS.c.idp_user_id == named,
        cast(USERS.c.id, Text) == named.lower(),
    )
    users = select(USERS.c.idp_user_id).where(of_user).distinct()
    if tenant_id is not None:
        users = users.where(USERS.c.tenant_id == tenant_id)
    found = set(session.scalars(users))
    if not found and tenant_id is None:
        found = {
            row.object_id
            for row in session.execute(select(OBJECTS).where(OBJECTS.c.kind == Kind.USER.value))
            if named in (row.object_id, _attribute(row, "email"))
        }
    if not found:
        raise Nobody(f"There is nobody called {named}.")
    if len(found) > 1:
        raise Conflict(f"Several people are called {named}: name one by id.")
    return str(found.pop())


def get_person(session: Connection, subject: str) -> Person:
    """The person with everything that names them, now or earlier."""
    users = session.execute(
        select(USERS).where(USERS.c.idp_user_id == subject).order_by(USERS.c.tenant_id)
    ).all()
    keys = tuple((row.tenant_id, row.id) for row in users)
    memberships = session.execute(
        select(MEMBERSHIPS).where(MEMBERSHIPS.c.user_id.in_([row.id for row in users]))
    ).all()
    changes = _history(session, "user", [row.id for row in users])
    subjects = frozenset({subject, *_values(users, changes, "idp_user_id")})
    objects = _objects(session, subjects)
    held = {_attribute(row, "email") for row in objects if row.kind == Kind.USER.value}
    addresses = {one.lower() for one in held | _values(users, changes, "email") if one}
    of_memberships = _history(session, "membership", [row.id for row in memberships])
    ids = _values(memberships, of_memberships, "idp_membership_id")
    ids |= {row.object_id for row in objects}
    return Person(
        subjects=subjects,
        users=keys,
        memberships=tuple((row.tenant_id, row.id) for row in memberships),
        identifiers=Identifiers(
            frozenset(subjects | {one for one in ids if one}),
            frozenset(addresses - _of_others(session, addresses, subjects)),
        ),
    )


def _objects(session: Connection, subjects: Iterable[str]) -> list[Row]:
    names = list(subjects)
    return list(session.execute(select(OBJECTS).where(of_subjects(names))))


def of_subjects(subjects: Iterable[str]) -> Any:
    """The condition on identity objects: the person's own, and their memberships."""
    names = list(subjects)
    own = and_(OBJECTS.c.kind == Kind.USER.value, OBJECTS.c.object_id.in_(names))
    return or_(own, OBJECTS.c.user_id.in_(names))


def _history(session: Connection, kind: str, row_ids: Iterable[UUID]) -> list[Mapping[str, Any]]:
    """What the audit trail says that these rows held."""
    chosen = select(AUDIT.c.before, AUDIT.c.after).where(
        AUDIT.c.target_type == kind, AUDIT.c.target_id.in_([str(one) for one in row_ids])
    )
    return [side for row in session.execute(chosen) for side in row]


def _values(rows: Iterable[Row], changes: Iterable[Mapping[str, Any]], name: str) -> set[str]:
    said = {side[name] for side in changes if isinstance(side.get(name), str)}
    return (said | {getattr(row, name) for row in rows}) - {ERASED}


def _of_others(session: Connection, addresses: set[str], subjects: Iterable[str]) -> set[str]:
    """Those of the addresses that somebody else has now."""
    theirs = select(func.lower(USERS.c.email)).where(
        func.lower(USERS.c.email).in_(addresses), USERS.c.idp_user_id.not_in(list(subjects))
    )
    return set(session.scalars(theirs))


def _attribute(row: Row, name: str) -> str:
    """What the provider's events say of the person, in the form :mod:`app.identity_sync.merge_state` keeps."""
    value, _ = row.state["attributes"].get(name, ("", None))
    return value or ""

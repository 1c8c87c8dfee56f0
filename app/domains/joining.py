"""Admits people whose verified e-mail address belongs to a verified domain of a tenant.

This is the only place that does so. It locks the tenant's row first, as every creation of a member
does, so a person who arrives in several ways at once becomes one user.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from sqlalchemy import ARRAY, Text, and_, any_, bindparam, or_, select

from app.audit.service import record, record_creation
from app.core.actors import SYSTEM_IDP, Actor
from app.core.db import queries, tenancy
from app.core.db.statements import Statement
from app.core.db.writes import insert_row, writes
from app.core.validation.scalars import address_or_empty
from app.domains.domain_names import domain_of, with_parents
from app.domains.models import Domain, DomainState, Join, JoinRequest, JoinRequestState
from app.invitations.service import CHECK_ADDRESS
from app.memberships import seats
from app.memberships import service as memberships
from app.memberships.models import Membership
from app.memberships.seats import SeatLimit
from app.tenants.models import Tenant
from app.users import service as users
from app.users.emails import email_key
from app.users.models import User

FIND_VERIFIED = Statement(
    "domains.find_verified",
    select(Domain).where(
        Domain.name == any_(bindparam("names", type_=ARRAY(Text))),
        Domain.state == DomainState.VERIFIED.value,
    ),
)
_has_id = User.idp_user_id == bindparam("idp_user_id")
FIND_USER = Statement(
    "users.find_joining",
    select(User, Membership.id.label("membership_id"))
    .outerjoin(
        Membership, and_(Membership.tenant_id == User.tenant_id, Membership.user_id == User.id)
    )
    .where(
        User.tenant_id == bindparam("tenant_id"),
        or_(_has_id, and_(User.email_key == bindparam("email_key"), User.is_active)),
    )
    .order_by(_has_id.desc())
    .limit(1),
)
WITHDRAW = Statement(
    "join_requests.withdraw",
    "DELETE FROM join_requests"
    " WHERE idp_user_id = ANY (CAST(:idp_user_ids AS text[])) AND state = 'pending'",
)

ACTIONS = {
    JoinRequestState.PENDING: "join_request.created",
    JoinRequestState.ACCEPTED: "join_request.accepted",
    JoinRequestState.DECLINED: "join_request.declined",
}


class Newcomer(NamedTuple):
    """Somebody whom the identity provider knows, and whose address it has verified."""

    idp_user_id: str
    email: str
    first_name: str = ""
    last_name: str = ""


Person: TypeAlias = Newcomer | JoinRequest | User


def admit(people: Iterable[Person], *, actor: Actor) -> None:
    """Let in or suggest those people whose address is of a verified domain, as its rule says.

    Needs the platform's scope.
    """
    found = match(people)
    for person, domain in sorted(found, key=lambda pair: pair[1].tenant_id):  # locks, in one order
        admit_to(domain, person, actor=actor)


def withdraw(idp_user_ids: Sequence[str]) -> None:
    """Delete the suggestions of people who have not their verified address any more."""
    if idp_user_ids:
        WITHDRAW.execute(idp_user_ids=idp_user_ids)


def admit_signed_in(subject: str, email: str) -> None:
    """Admit the person who has just signed in to the console with this verified address."""
    tenancy.enter(tenancy.PLATFORM)
    admit([Newcomer(subject, address_or_empty(email))], actor=SYSTEM_IDP)


def match(people: Iterable[Person]) -> list[tuple[Person, Domain]]:
    """The people whose address is of any tenant's verified domain, each with this domain.

    If a domain and its subdomain match, the longer name counts. Needs the platform's scope.
    """
    named = [(person, name) for person in people if (name := domain_of(person.email)) is not None]
    if not named:
        return []
    names = {one for _, name in named for one in with_parents(name)}
    domains = {domain.name: domain for domain in FIND_VERIFIED.all(names=sorted(names))}
    found = []
    for person, name in named:
        claimed = (domains[one] for one in with_parents(name) if one in domains)
        counting = (one for one in claimed if one.name == name or one.include_subdomains)
        if (domain := next(counting, None)) is not None:
            found.append((person, domain))
    return found


def admit_to(domain: Domain, person: Person, *, actor: Actor) -> JoinRequest | None:
    """Create a membership or a join request for the person; None where nothing changes.

    Nothing changes for a person who is or was a member or was declined, if another user has the
    address, in a suspended tenant, and if the domain is no longer verified or its rule is now
    ``off``. Without a free seat ``auto`` creates a join request.
    """
    tenant, _ = queries.lock_with(Tenant, domain.tenant_id)
    now = queries.find_locked(Domain, tenant_id=tenant.id, id=domain.id, state=domain.state)
    if now is None or now.join == Join.OFF:
        return None
    domain = now
    found = find_user(tenant.id, person)
    request = queries.find_row(JoinRequest, tenant_id=tenant.id, idp_user_id=person.idp_user_id)
    is_open = request is None or request.state == JoinRequestState.PENDING
    if not (tenant.is_active and is_open and _may_join(person, found)):
        return None
    user = None
    if domain.join == Join.AUTO:
        with suppress(SeatLimit):
            user = let_in(tenant, person, found and found.User, domain.join_role, actor=actor)
    if request is None:
        return _create(domain, person, user, actor=actor)
    if user is None:
        return None
    return decide(request, JoinRequestState.ACCEPTED, user.id, actor=actor)


def find_user(tenant_id: UUID, person: Person) -> Any | None:
    """The person's ``User`` with the ``membership_id``, or another active user with the address."""
    return FIND_USER.first(
        tenant_id=tenant_id, idp_user_id=person.idp_user_id, email_key=email_key(person.email)
    )


def let_in(tenant: Tenant, person: Person, user: User | None, role: str, *, actor: Actor) -> User:
    """Give the person's user a membership, and create the user if there is none.

    A pending invitation has taken the seat already. Raises SeatLimit and RoleAboveOwn.
    """
    key = email_key((user or person).email)
    found = CHECK_ADDRESS.one(tenant_id=tenant.id, email_key=key)
    with writes() as w:
        if not found.is_invited:
            seats.take(found.limit, tenant.id, actor=actor, into=w)
        if user is None:
            values = {name: getattr(person, name) for name in Newcomer._fields}
            user = users.insert_in(tenant, values, actor=actor, into=w)
        memberships.create_for(user, {"role": role}, actor=actor, into=w)
    return user


def decide(
    request: JoinRequest, state: JoinRequestState, user_id: UUID | None = None, *, actor: Actor
) -> JoinRequest:
    """Accept or decline a request that is locked and pending."""
    values = {"state": state.value, "user_id": user_id}
    decided, change = queries.update_row(JoinRequest, request, values, actor_id=actor.id)
    record(ACTIONS[state], decided, change, actor=actor)
    return decided


def _create(domain: Domain, person: Person, user: User | None, *, actor: Actor) -> JoinRequest:
    """The request of a person; with their ``user`` it is accepted already."""
    state = JoinRequestState.PENDING if user is None else JoinRequestState.ACCEPTED
    values = {
        **{name: getattr(person, name) for name in Newcomer._fields},
        "tenant_id": domain.tenant_id,
        "domain": domain.name,
        "state": state.value,
        "user_id": user and user.id,
        **actor.authorship,
    }
    request = insert_row(JoinRequest, values)
    record_creation(ACTIONS[state], request, actor=actor)
    return request


def _may_join(person: Person, found: Any | None) -> bool:
    """Whether the person has no user, or an active user that was never a member."""
    if found is None:
        return True
    is_own = found.User.idp_user_id == person.idp_user_id
    return is_own and found.User.is_active and found.membership_id is None

"""Takes in the people whom the identity provider knew before a domain had its rule."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Boolean, Text, and_, bindparam, or_, select, tuple_

from app.core.actors import Actor
from app.core.db import queries, tenancy
from app.core.db.statements import Statement
from app.domains.domain_names import with_reversed_labels
from app.domains.joining import Newcomer, admit_to, match
from app.domains.models import Domain, DomainState, JoinRequest
from app.domains.service import DomainNotVerified, get_domain
from app.identity_sync.models import IdentityObject
from app.tenants.models import Tenant

BATCH = 100  # people of one request

_domain, _id = IdentityObject.verified_domain, IdentityObject.object_id
_name = bindparam("name", type_=Text)
_is_below = and_(
    bindparam("include_subdomains", type_=Boolean), _domain > _name + ".", _domain < _name + "/"
)
FIND = Statement(
    "identity_objects.find_of_domain",
    select(
        _domain,
        _id,
        *(
            IdentityObject.state["attributes", name, 0].as_string().label(name)
            for name in ("email", "first_name", "last_name")
        ),
    )
    .where(
        or_(_domain == _name, _is_below),
        tuple_(_domain, _id) > tuple_(bindparam("after_domain"), bindparam("after_id")),
    )
    .order_by(_domain, _id)
    .limit(BATCH + 1),
)


class Sweep(NamedTuple):
    """The people who were admitted or suggested; ``next_after`` is None after the last people."""

    people: Sequence[JoinRequest]
    next_after: str | None


def sweep(
    domain_id: UUID | str, *, after: str = "", is_preview: bool = False, actor: Actor
) -> Sweep:
    """Admit or suggest the next :data:`BATCH` people of a verified domain, as its rule says.

    A preview returns the same result and undoes the changes. Raises DomainNotVerified and
    RoleAboveOwn.
    """
    queries.lock_with(Tenant, get_domain(domain_id).tenant_id)  # in the order of admit_to
    domain = queries.lock_row(Domain, domain_id)
    if domain.state != DomainState.VERIFIED:
        raise DomainNotVerified
    after_domain, _, after_id = after.partition(" ")
    rows = FIND.all(
        name=with_reversed_labels(domain.name),
        include_subdomains=domain.include_subdomains,
        after_domain=after_domain,
        after_id=after_id,
    )
    batch = rows[:BATCH]
    people = [
        Newcomer(row.object_id, row.email, row.first_name or "", row.last_name or "")
        for row in batch
    ]
    with tenancy.in_platform_scope():  # a subdomain may be another tenant's
        found = [person for person, one in match(people) if one.id == domain.id]
    with tenancy.trial() if is_preview else nullcontext():
        swept = [admit_to(domain, person, actor=actor) for person in found]
    last = batch[-1] if len(rows) > BATCH else None
    next_after = last and f"{last.verified_domain} {last.object_id}"
    return Sweep([one for one in swept if one is not None], next_after)

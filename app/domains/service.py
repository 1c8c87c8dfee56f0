"""Domains: create, change, delete, and ask for a check."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import idna

from app.audit.service import record, record_creation
from app.auth.permissions import ALL, Permission, Role
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries, tenancy
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import Change, visible_id
from app.core.db.writes import insert_row
from app.core.errors import Conflict, Forbidden, PermissionDenied
from app.core.jobs.queues import JOBS
from app.domains.domain_names import CHALLENGE
from app.domains.models import CheckError, Domain, DomainState, Join, JoinRequest, JoinRequestState
from app.tenants.models import Tenant

CHECK = "app.domains.jobs.check_domains"
MAX_DOMAINS = 50  # of a tenant
PAUSE = timedelta(seconds=10)  # between two checks of a domain that somebody asks for
RULE = {"join", "join_role", "include_subdomains"}
"""Fields that decide who becomes a member, and with which role."""


class DomainExists(Conflict):
    code = "domain_exists"
    detail = "The tenant has this domain already."


class DomainTaken(Conflict):
    code = "domain_taken"
    detail = "Another tenant has verified this domain. Only after its end can another one do so."


class DomainNotVerified(Conflict):
    code = "domain_not_verified"
    detail = "This needs a verified domain."


class TooManyDomains(Conflict):
    code = "too_many_domains"
    detail = f"A tenant can have at most {MAX_DOMAINS} domains; delete one first."


class OwnerJoinRole(Forbidden):
    code = "join_role_above_member"
    detail = "Only an owner can let people join with a role above member."


CONFLICTS = {"uq_domains_tenant_id_name": DomainExists}


def get_domain(domain_id: UUID | str) -> Domain:
    return queries.get_row(Domain, domain_id)


def list_domains(
    paging: Paging = FIRST_PAGE, *, tenant_id: UUID | None = None, **equal: object
) -> Page:
    """One page of a tenant's domains (of all, for the platform) with these values of columns."""
    return paginate(Domain, paging, equal=equal, tenant_id=tenant_id)


def create(
    tenant_id: UUID, values: Mapping[str, Any], *, actor: Actor, held: Collection[Permission] = ALL
) -> Domain:
    """Create a domain that is not verified; ``held`` are the creator's permissions.

    Raises NotFound for an unknown tenant, PermissionDenied, OwnerJoinRole, DomainExists and
    TooManyDomains. It does not reveal whether another tenant has the domain.
    """
    _check_may_set(values, actor, held)
    queries.lock_with(Tenant, visible_id(tenant_id))  # so no other request adds a domain
    if queries.count_where(Domain, tenant_id=tenant_id) >= MAX_DOMAINS:
        raise TooManyDomains
    now = utcnow()
    domain = insert_row(
        Domain,
        {
            **values,
            "tenant_id": tenant_id,
            "display_name": idna.decode(values["name"]),
            "record_name": CHALLENGE + values["name"],
            "record_value": secrets.token_urlsafe(32),
            "unconfirmed_since": now,
            "next_check_at": now + timedelta(minutes=1),
            **actor.authorship,
        },
        conflicts=CONFLICTS,
    )
    record_creation("domain.created", domain, actor=actor)
    return domain


def update(
    domain_id: UUID | str,
    values: Mapping[str, Any],
    *,
    actor: Actor,
    held: Collection[Permission] = ALL,
) -> Domain:
    """Change what follows from a domain. Raises NotFound, PermissionDenied and OwnerJoinRole."""
    domain = queries.lock_row(Domain, domain_id)
    before = domain
    domain, change = queries.update_row(Domain, domain, values, actor_id=actor.id)
    if change is not None:
        if not RULE.isdisjoint(change.after):
            _check_may_set({**before._asdict(), **values}, actor, held)
        record("domain.updated", domain, change, actor=actor)
    return domain


def delete(domain_id: UUID | str, *, actor: Actor) -> None:
    """Delete a domain and the suggestions that follow from it. Its members stay."""
    domain = queries.lock_row(Domain, domain_id)
    queries.delete_row(Domain, domain)
    key = {"tenant_id": domain.tenant_id, "domain": domain.name}
    queries.delete_where(JoinRequest, **key, state=JoinRequestState.PENDING.value)
    record("domain.deleted", domain, Change(domain._asdict(), {}), actor=actor)


def request_check(domain_id: UUID | str, *, actor: Actor) -> Domain:
    """Schedule a check of the record now; a domain that is not verified is tried for 72 h again.

    Changes nothing within :data:`PAUSE` after a check. Raises DomainTaken if the last check has
    found the record, but another tenant still has the domain, so nobody else learns this.
    """
    domain = queries.lock_row(Domain, domain_id)
    if domain.error == CheckError.DOMAIN_TAKEN and _is_taken(domain.name):
        raise DomainTaken
    now = utcnow()
    if domain.checked_at is not None and now - domain.checked_at < PAUSE:
        return domain
    values: dict[str, object] = {"next_check_at": now}
    if domain.state != DomainState.VERIFIED:
        values |= {"state": DomainState.PENDING.value, "unconfirmed_since": now}
    domain, change = queries.update_row(Domain, domain, values, actor_id=actor.id)
    record("domain.check_requested", domain, change, actor=actor)
    JOBS[CHECK].push()
    return domain


def _is_taken(name: str) -> bool:
    with tenancy.in_platform_scope():
        return queries.count_where(Domain, name=name, state=DomainState.VERIFIED.value) > 0


def _check_may_set(rule: Mapping[str, Any], actor: Actor, held: Collection[Permission]) -> None:
    """Raise if whoever sets the rule could not themselves let people in so.

    PermissionDenied without ``memberships:write``, OwnerJoinRole for a role above member.
    """
    if rule["join"] != Join.OFF and Permission.MEMBERSHIPS_WRITE not in held:
        raise PermissionDenied(f"This needs the permission {Permission.MEMBERSHIPS_WRITE}.")
    is_above = Role(rule["join_role"]).rank > Role.MEMBER.rank
    if is_above and actor.role not in (None, Role.OWNER):
        raise OwnerJoinRole

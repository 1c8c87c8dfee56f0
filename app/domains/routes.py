"""/v1/domains and /v1/join-requests."""

from __future__ import annotations

from typing import Any

from app.audit.includes import HISTORY, TENANT
from app.audit.routes import add_history
from app.auth.guard import current_actor, current_principal, requires
from app.auth.permissions import Permission
from app.auth.tenant_choice import TenantChoiceSchema, target_id
from app.core.db.pages import Page
from app.core.http.blueprint import Blueprint
from app.domains import join_requests, schemas, service, sweeps
from app.domains.join_requests import JoinRequestDecided
from app.domains.models import Domain, JoinRequest
from app.domains.service import (
    DomainExists,
    DomainNotVerified,
    DomainTaken,
    OwnerJoinRole,
    TooManyDomains,
)
from app.memberships.owners import RoleAboveOwn
from app.memberships.seats import SeatLimit
from app.users.emails import EmailTaken

blp = Blueprint(
    "domains",
    __name__,
    url_prefix="/v1/domains",
    description="Domains of tenants: their verification, and who joins by them.",
)
requests = Blueprint(
    "join_requests",
    __name__,
    url_prefix="/v1/join-requests",
    description="People whom a verified domain suggests as members.",
)
BLUEPRINTS = (blp, requests)
INCLUDES = (TENANT, HISTORY)


@blp.get("")
@requires(Permission.DOMAINS_READ)
@blp.arguments(schemas.DomainQuerySchema, location="query")
@blp.columns("id", "tenant.slug", "display_name", "state", "error", "join", "next_check_at")
@blp.response(200, schemas.DomainSchema(many=True), includes=INCLUDES)
def list_domains(query: dict[str, Any]) -> Page:
    """List domains."""
    return service.list_domains(**query)


@blp.post("")
@requires(Permission.DOMAINS_WRITE)
@blp.arguments(TenantChoiceSchema, location="query")
@blp.arguments(schemas.DomainCreateSchema)
@blp.response(201, schemas.DomainSchema)
@blp.raises(DomainExists, OwnerJoinRole, TooManyDomains)
def create(query: dict[str, Any], body: dict[str, Any]) -> Domain:
    """Create a domain; set the TXT record that it shows to verify it.

    The service looks for the record after 1, 5 and 30 minutes, then at longer intervals for 72
    hours, and whenever `verify` asks. A name that another tenant has verified can be created, but
    not verified. `join` other than `off` also needs `memberships:write`, and only an owner or a
    superadmin sets a `join_role` above `member`.
    """
    return service.create(target_id(query.get("tenant_id")), body, **_giver())


@blp.get("/<domain_id>")
@requires(Permission.DOMAINS_READ)
@blp.response(200, schemas.DomainSchema, includes=INCLUDES)
def get(domain_id: str) -> Domain:
    """Get a domain."""
    return service.get_domain(domain_id)


@blp.patch("/<domain_id>")
@requires(Permission.DOMAINS_WRITE)
@blp.arguments(schemas.DomainUpdateSchema)
@blp.response(200, schemas.DomainSchema)
@blp.raises(OwnerJoinRole)
def update(body: dict[str, Any], domain_id: str) -> Domain:
    """Update what follows from a domain. The name cannot change."""
    return service.update(domain_id, body, **_giver())


@blp.delete("/<domain_id>")
@requires(Permission.DOMAINS_WRITE)
@blp.response(204)
def delete(domain_id: str) -> None:
    """Delete a domain, and the join requests that wait because of it.

    Members who joined by it stay.
    """
    service.delete(domain_id, actor=current_actor())


@blp.post("/<domain_id>/verify")
@requires(Permission.DOMAINS_WRITE)
@blp.response(202, schemas.DomainSchema)
@blp.raises(DomainTaken)
def verify(domain_id: str) -> Domain:
    """Look for the TXT record soon, in the background.

    The result is in `state` and `error` a few seconds later, when `checked_at` is new. A domain that
    is `failed` or `lapsed` is `pending` again. Within 10 seconds after a check nothing happens.
    It is refused (409 `domain_taken`) if the last check has found the record, but another tenant
    still has the verified domain.
    """
    return service.request_check(domain_id, actor=current_actor())


@blp.post("/<domain_id>/sweep")
@requires(Permission.MEMBERSHIPS_WRITE)
@blp.arguments(schemas.SweepQuerySchema, location="query")
@blp.response(200, schemas.SweepSchema)
@blp.raises(DomainNotVerified, RoleAboveOwn)
def sweep(query: dict[str, Any], domain_id: str) -> sweeps.Sweep:
    """Let in or suggest the people of a verified domain whom the identity provider knew before.

    Each call looks at up to 100 people whose address the provider has verified, as the domain's
    `join` says. People who are, or were, members do not change. A preview shows what this call
    would do, with ids that are not used.
    """
    return sweeps.sweep(
        domain_id, after=query["after"], is_preview=query["preview"], actor=current_actor()
    )


@requests.get("")
@requires(Permission.MEMBERSHIPS_READ)
@requests.arguments(schemas.JoinRequestQuerySchema, location="query")
@requests.columns("id", "tenant.slug", "email", "domain", "state", "created_at")
@requests.response(200, schemas.JoinRequestSchema(many=True), includes=INCLUDES)
def list_requests(query: dict[str, Any]) -> Page:
    """List join requests."""
    return join_requests.list_join_requests(**query)


@requests.get("/<join_request_id>")
@requires(Permission.MEMBERSHIPS_READ)
@requests.response(200, schemas.JoinRequestSchema, includes=INCLUDES)
def get_request(join_request_id: str) -> JoinRequest:
    """Get a join request."""
    return join_requests.get_join_request(join_request_id)


@requests.post("/<join_request_id>/accept")
@requires(Permission.MEMBERSHIPS_WRITE)
@requests.response(200, schemas.JoinRequestSchema)
@requests.raises(JoinRequestDecided, RoleAboveOwn, SeatLimit, EmailTaken)
def accept(join_request_id: str) -> JoinRequest:
    """Make the person a member with the domain's `join_role`."""
    return join_requests.accept(join_request_id, actor=current_actor())


@requests.post("/<join_request_id>/decline")
@requires(Permission.MEMBERSHIPS_WRITE)
@requests.response(200, schemas.JoinRequestSchema)
@requests.raises(JoinRequestDecided)
def decline(join_request_id: str) -> JoinRequest:
    """Decline a join request; the person is not suggested again."""
    return join_requests.decline(join_request_id, actor=current_actor())


def _giver() -> dict[str, Any]:
    """Who sets a rule, as the service's functions take it."""
    principal = current_principal()
    return {"actor": principal.actor, "held": principal.permissions}


add_history(blp, "/<domain_id>", "domain", service.get_domain)
add_history(requests, "/<join_request_id>", "join_request", join_requests.get_join_request)

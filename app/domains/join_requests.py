"""People whom a domain suggests as members: list, accept, decline."""

from __future__ import annotations

from uuid import UUID

from app.auth.permissions import Role
from app.core.actors import Actor
from app.core.db import queries
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.errors import Conflict
from app.domains import joining
from app.domains.models import Domain, JoinRequest, JoinRequestState
from app.tenants.models import Tenant
from app.users.emails import EmailTaken


class JoinRequestDecided(Conflict):
    code = "join_request_decided"
    detail = "This request was accepted or declined already."


def get_join_request(request_id: UUID | str) -> JoinRequest:
    return queries.get_row(JoinRequest, request_id)


def list_join_requests(
    paging: Paging = FIRST_PAGE, *, tenant_id: UUID | None = None, **equal: object
) -> Page:
    """One page of a tenant's requests (of all, for the platform) with these values of columns."""
    return paginate(JoinRequest, paging, equal=equal, tenant_id=tenant_id)


def accept(request_id: UUID | str, *, actor: Actor) -> JoinRequest:
    """Make the person a member with the domain's ``join_role``; a second time changes nothing.

    A person who has become a member meanwhile keeps the membership as it is. Raises
    JoinRequestDecided, RoleAboveOwn, SeatLimit, and EmailTaken if another user has the address now.
    """
    request, tenant = _lock(request_id, JoinRequestState.ACCEPTED)
    if request.state == JoinRequestState.ACCEPTED:
        return request
    found = joining.find_user(tenant.id, request)
    if found is not None and found.User.idp_user_id != request.idp_user_id:
        raise EmailTaken
    if found is not None and found.membership_id is not None:
        user = found.User
    else:
        domain = queries.find_row(Domain, tenant_id=tenant.id, name=request.domain)
        role = Role.MEMBER if domain is None else domain.join_role
        user = joining.let_in(tenant, request, found and found.User, role, actor=actor)
    return joining.decide(request, JoinRequestState.ACCEPTED, user.id, actor=actor)


def decline(request_id: UUID | str, *, actor: Actor) -> JoinRequest:
    """Decline a request, so the person is not suggested again. Raises JoinRequestDecided."""
    request, _ = _lock(request_id, JoinRequestState.DECLINED)
    if request.state == JoinRequestState.DECLINED:
        return request
    return joining.decide(request, JoinRequestState.DECLINED, actor=actor)


def _lock(request_id: UUID | str, wanted: JoinRequestState) -> tuple[JoinRequest, Tenant]:
    """The request and its tenant, locked in the order of :mod:`app.domains.joining`."""
    tenant, _ = queries.lock_with(Tenant, get_join_request(request_id).tenant_id)
    request = queries.lock_row(JoinRequest, request_id)
    if request.state not in (JoinRequestState.PENDING, wanted):
        raise JoinRequestDecided
    return request, tenant

"""Accepting an invitation: whoever has its token and the invited address becomes a member."""

from __future__ import annotations

from app.auth.guard import TenantSuspended
from app.auth.keys import digest_of
from app.auth.permissions import Role
from app.auth.tokens import Claims
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries, tenancy
from app.core.db.transactions import RowChanged
from app.core.errors import Forbidden, NotFound
from app.core.validation.scalars import address_or_empty
from app.invitations.models import STATE, Invitation, InvitationState
from app.invitations.service import InvitationEnded, change
from app.memberships import service as memberships
from app.memberships.models import Membership
from app.memberships.service import MembershipExists
from app.tenants.models import Tenant
from app.users import service as users
from app.users.emails import is_same_address
from app.users.models import User
from app.users.service import IdpUserIdTaken

ACTOR_PREFIX = "invitation:"


class OtherAddress(Forbidden):
    code = "other_address"
    detail = "The token's verified e-mail address is not the invited one."


def accept(token: str, claims: Claims) -> Membership:
    """Make the person of a user token a member, by a token that was sent to their address.

    An active membership stays as it is. A second call of the same person returns the same one.
    Raises NotFound for an unknown token, OtherAddress, TenantSuspended, InvitationEnded and what
    the services of users and memberships raise.
    """
    tenancy.enter(tenancy.PLATFORM)  # only the token determines the tenant
    found = queries.get_where(Invitation, digest=digest_of(token))
    tenancy.enter(tenancy.Scope(found.tenant_id))
    tenant, _ = queries.lock_with(Tenant, found.tenant_id)
    invitation, (state,) = queries.lock_with(Invitation, found.id, STATE)
    if invitation.digest != found.digest:
        raise NotFound.of(Invitation)
    if not is_same_address(address_or_empty(claims.email or ""), invitation.email):
        raise OtherAddress
    if not tenant.is_active:
        raise TenantSuspended
    user = queries.find_row(User, tenant_id=tenant.id, idp_user_id=claims.subject)
    membership = queries.find_row(Membership, tenant_id=tenant.id, user_id=user and user.id)
    if state == InvitationState.PENDING:
        try:
            return _join(invitation, user, membership, claims.subject)
        except (IdpUserIdTaken, MembershipExists):
            # The person has joined in another way since; the next attempt finds them.
            raise RowChanged("users") from None
    if membership is None or membership.user_id != invitation.user_id:
        raise InvitationEnded(f"This invitation is {state}.")
    return membership


def _join(
    invitation: Invitation, user: User | None, membership: Membership | None, subject: str
) -> Membership:
    """Accept a locked invitation; ``user`` and ``membership`` are what the person has already."""
    actor = Actor(f"{ACTOR_PREFIX}{invitation.id}", invitation.acts_as)
    if user is None:
        person = {
            "idp_user_id": subject,
            "email": invitation.email,
            "meta_data": invitation.meta_data,
        }
        user = users.create(invitation.tenant_id, person, actor=actor)
    # First, so that the seat which the invitation has taken is free for the membership.
    values = {"accepted_at": utcnow(), "user_id": user.id}
    change(invitation, values, "invitation.accepted", actor=actor)
    if not user.is_active:
        users.update(user.id, {"is_active": True}, actor=actor)
    if membership is None:
        member = {"user_id": user.id, "role": invitation.role}
        return memberships.create(invitation.tenant_id, member, actor=actor)
    if membership.is_active:
        return membership
    memberships.set_role(membership.id, Role(invitation.role), actor=actor)
    return memberships.set_active(membership.id, True, actor=actor)

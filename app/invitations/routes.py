"""/v1/invitations."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from app.audit.includes import HISTORY, TENANT
from app.audit.routes import add_history
from app.auth.guard import (
    TenantSuspended,
    current_actor,
    current_claims,
    requires,
    requires_user_token,
)
from app.auth.permissions import Permission
from app.core.db.pages import Page
from app.core.errors import NotFound, PreconditionFailed
from app.core.http.blueprint import Blueprint
from app.core.http.rate_limit import rate_limits
from app.core.http.request import current_request
from app.core.json_text import Json
from app.invitations import accepting, schemas, service
from app.invitations.accepting import OtherAddress
from app.invitations.service import InvitationEnded, ManagedByProvider
from app.memberships.directories import ManagedByDirectory
from app.memberships.models import Membership
from app.memberships.owners import OwnerOnly, RoleAboveOwn
from app.memberships.schemas import TenantMembershipSchema
from app.memberships.seats import SeatLimit
from app.tenants.lookup import take_target_id
from app.tenants.service import TenantDeleting
from app.users.emails import EmailTaken, ErasureRequested
from app.webhooks.endpoints.encryption import SecretsKeyMissing

blp = Blueprint(
    "invitations",
    __name__,
    url_prefix="/v1/invitations",
    description="E-mail addresses that may become members.",
)
BLUEPRINTS = (blp,)
INCLUDES = (TENANT, HISTORY)
SECRETS = ("token", "url")
SEAT_REFUSALS = (
    RoleAboveOwn, service.AlreadyMember, service.InvitationExists, SeatLimit, SecretsKeyMissing,
)  # fmt: skip


@blp.get("")
@requires(Permission.MEMBERSHIPS_READ)
@blp.arguments(schemas.InvitationQuerySchema, location="query")
@blp.columns("id", "tenant.slug", "email", "role", "state", "expires_at", "source")
@blp.response(200, schemas.InvitationSchema(many=True), includes=INCLUDES)
def list_invitations(query: dict[str, Json]) -> Page:
    """List invitations, also those that have ended."""
    return service.list_invitations(**query)


@blp.post("")
@requires(Permission.MEMBERSHIPS_WRITE)
@blp.arguments(schemas.InvitationCreateSchema)
@blp.response(201, schemas.InvitationTokenSchema, shown_once=SECRETS)
@blp.raises(*SEAT_REFUSALS, TenantDeleting, NotFound.of("tenant"))
def create(body: dict[str, Json]) -> SimpleNamespace:
    """Create an invitation of an e-mail address; it takes a seat until it ends.

    Send the `token` or the `url` to the address, unless the service sends mail itself (`SMTP_URL`).
    The event `invitation.created` has them too. An address has at most one pending invitation.
    """
    return service.create(take_target_id(body), body, actor=current_actor())


@blp.post("/accept")
@requires_user_token
@blp.arguments(schemas.InvitationAcceptSchema)
@blp.response(200, TenantMembershipSchema)
@blp.raises(
    OtherAddress,
    TenantSuspended,
    InvitationEnded,
    RoleAboveOwn,
    OwnerOnly,
    ManagedByDirectory,
    TenantDeleting,
    EmailTaken,
    ErasureRequested,
    SeatLimit,
    PreconditionFailed,
    NotFound.of("invitation"),
)
def accept(body: dict[str, Json]) -> Membership:
    """Accept an invitation, as the person who has received its token.

    The verified e-mail address of the user token must be the invited one. The user and the
    membership are created, or activated with the invited role; an active membership stays as it is.
    A second call of the same person answers the same. After 20 unknown tokens in an hour from one
    address the answer is 429.
    """
    with rate_limits().guessing(current_request(), "invitation"):
        return accepting.accept(body["token"], current_claims())


@blp.get("/<invitation_id>")
@requires(Permission.MEMBERSHIPS_READ)
@blp.response(200, schemas.InvitationSchema, includes=INCLUDES)
def get(invitation_id: str) -> Any:
    """Get an invitation, without its token."""
    return service.get_invitation(invitation_id)


@blp.post("/<invitation_id>/resend")
@requires(Permission.MEMBERSHIPS_WRITE)
@blp.arguments(schemas.InvitationResendSchema, required=False)
@blp.response(200, schemas.InvitationTokenSchema, shown_once=SECRETS)
@blp.raises(*SEAT_REFUSALS, ManagedByProvider, InvitationEnded)
def resend(body: dict[str, Json], invitation_id: str) -> SimpleNamespace:
    """Give a pending or expired invitation a new token and a new end.

    The old token is invalid at once. An expired invitation takes a seat again.
    """
    return service.resend(invitation_id, **body, actor=current_actor())


@blp.delete("/<invitation_id>")
@requires(Permission.MEMBERSHIPS_WRITE)
@blp.response(204)
@blp.raises(ManagedByProvider, InvitationEnded)
def revoke(invitation_id: str) -> None:
    """Revoke an invitation that nobody has accepted; it stays in the list. Its seat is free."""
    service.revoke(invitation_id, actor=current_actor())


add_history(blp, "/<invitation_id>", "invitation", service.get_invitation)

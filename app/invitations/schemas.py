"""Requests and answers of /v1/invitations."""

from __future__ import annotations

from app.auth.permissions import Role
from app.core.http.pagination import ONE_TENANT, PageQuerySchema
from app.core.validation.fields import AwareDateTime, Choice, Email, Int, JsonObject, Str, Uuid
from app.core.validation.scalars import MAX_NAME
from app.core.validation.schemas import AttributedSchema, Schema
from app.invitations.models import API, InvitationState
from app.invitations.service import DAYS

MAX_DAYS = 30


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "email": "ada@example.com",
        "role": "member",
        "meta_data": {"cost_center": "R-12"},
        "source": API,
        "idp_invitation_id": "",
        "accepted_at": None,
        "revoked_at": None,
        "user_id": None,
        "token": "inv_kYhV0w3Jq1lB0m6v2cXz8nTgRr5sWdEoPfAuI7yKbHM",
        "url": "https://app.example.com/join?token=inv_kYhV0w3Jq1lB0m6v2cXz8nTgRr5sWdEoPfAuI7yKbHM",
        "expires_in_days": DAYS,
    }
    descriptions = {
        "email": "The invited address. Only who has it, as a verified one, can accept.",
        "role": "The role of the new membership.",
        "meta_data": "The metadata of the user whom accepting creates.",
        "state": "What the invitation is now. While it is pending it takes a seat.",
        "source": f"`{API}`, or the identity provider whose invitation it is.",
        "idp_invitation_id": "The identity provider's id of the invitation; empty without one.",
        "expires_at": "When it can no longer be accepted (UTC).",
        "accepted_at": "When it was accepted (UTC); null if it was not.",
        "revoked_at": "When it was revoked (UTC); null if it was not.",
        "user_id": "The user who has accepted it; null if nobody has.",
        "expires_in_days": "Days until it expires.",
    }


class InvitationSchema(Documented, AttributedSchema):
    """An invitation, without its token."""

    tenant_id = Uuid()
    email = Str()
    role = Choice(Role)
    state = Choice(InvitationState)
    source = Str()
    idp_invitation_id = Str()
    expires_at = AwareDateTime()
    accepted_at = AwareDateTime(nullable=True)
    revoked_at = AwareDateTime(nullable=True)
    user_id = Uuid(nullable=True)
    meta_data = JsonObject()


class InvitationTokenSchema(InvitationSchema):
    """An invitation with its token, which is not stored."""

    optional = ("token", "url")

    token = Str(
        nullable=True,
        description="The token to accept it with. Absent if the answer is replayed for an"
        " Idempotency-Key; null in an event if it is not valid any more.",
    )
    url = Str(
        nullable=True, description="`INVITATION_URL` with the token; null without that setting."
    )


class InvitationCreateSchema(Documented):
    """A new invitation."""

    email = Email(required=True)
    role = Choice(Role, required=True)
    expires_in_days = Int(ge=1, le=MAX_DAYS, load_default=DAYS)
    meta_data = JsonObject(load_default=dict)
    tenant_id = Str(
        min_length=1,
        max_length=MAX_NAME,
        description="The tenant: its id, `idp_org_id` or slug. Without it, the credential's own.",
    )


class InvitationResendSchema(Documented):
    """When the invitation expires."""

    needs_body = False

    expires_in_days = Int(ge=1, le=MAX_DAYS, load_default=DAYS)


class InvitationAcceptSchema(Documented):
    """The token that was sent to the invited address."""

    token = Str(required=True, min_length=1, max_length=MAX_NAME, description="The token.")


class InvitationQuerySchema(Documented, PageQuerySchema):
    """Filters of the list of invitations."""

    tenant_id = Uuid(metadata=ONE_TENANT)
    state = Choice(InvitationState, description="Only invitations in this state.")
    email = Str(description="Only invitations of this address, in whatever case.")

"""Requests and answers of /v1/setup-links."""

from __future__ import annotations

from app.core.http.pagination import ONE_TENANT, PageQuerySchema
from app.core.validation.fields import AwareDateTime, Choice, Email, Int, ListOf, Str, Uuid
from app.core.validation.schemas import AttributedSchema, Schema
from app.setup_links.models import SetupScope
from app.setup_links.service import SetupLinkState

MAX_HOURS = 168
MAX_NAME = 255


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "scopes": ["scim", "webhook_endpoints"],
        "contact": "it@acme.example",
        "expires_in_hours": 72,
        "state": "unopened",
        "opened_at": None,
        "revoked_at": None,
        "url": "https://api.example.com/console/setup/open?token=setup_…",
    }
    descriptions = {
        "scopes": "What the link sets up.",
        "contact": "The address of whom the link is for; for people. Nothing is sent there.",
        "state": "Whether the link has been opened, or has ended.",
        "expires_in_hours": "The link and its session end so many hours from now. A link that an"
        " API key creates ends with the key at the latest.",
        "expires_at": "When the link and its session end (UTC).",
        "opened_at": "When a browser opened the link (UTC); no other one can. Null before.",
        "revoked_at": "When the link was revoked (UTC), also by the tenant's suspension; null if"
        " it was not.",
    }


class SetupLinkSchema(Documented, AttributedSchema):
    """A setup link, without its URL."""

    tenant_id = Uuid()
    scopes = ListOf(Choice(SetupScope))
    contact = Str()
    state = Choice(SetupLinkState)
    expires_at = AwareDateTime()
    opened_at = AwareDateTime(nullable=True)
    revoked_at = AwareDateTime(nullable=True)


class SetupLinkCreatedSchema(SetupLinkSchema):
    """A new link with its URL, which no other answer shows."""

    optional = ("url",)

    url = Str(description="Absent if the answer is replayed for an Idempotency-Key.")


class SetupLinkCreateSchema(Documented):
    """A new link."""

    tenant_id = Str(
        min_length=1,
        max_length=MAX_NAME,
        description="The tenant: its id, `idp_org_id` or slug. Without it, the credential's own.",
    )
    scopes = ListOf(Choice(SetupScope), required=True, metadata={"minItems": 1, "maxItems": 10})
    expires_in_hours = Int(ge=1, le=MAX_HOURS, load_default=72)
    contact = Email()


class SetupLinkQuerySchema(PageQuerySchema):
    """Filters of the list of links."""

    tenant_id = Uuid(metadata=ONE_TENANT)
    state = Choice(SetupLinkState, description="Only links in this state.")

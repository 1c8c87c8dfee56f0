"""Requests and answers of /v1/tenants."""

from __future__ import annotations

from typing import Any

import marshmallow as ma

from app.core.validation.fields import (
    AwareDateTime,
    Bool,
    Choice,
    Email,
    Int,
    JsonObject,
    Name,
    Scalar,
    Str,
    Uuid,
)
from app.core.validation.schemas import AnswerSchema, RowSchema, Schema
from app.custom_fields.schemas import MetaDataQuerySchema
from app.search.filters import MAX_QUERY, MIN_QUERY
from app.search.schemas import BY_WORDS
from app.tenants import slugs
from app.tenants.models import DeletionStage

MAX_KEY, MAX_REASON, MAX_NOTES = 255, 500, 10_000


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "idp_org_id": "org_01JZ4K",
        "name": "Acme Ltd",
        "slug": "acme-ltd",
        "plan_name": "growth",
        "primary_contact_name": "Ada Lovelace",
        "primary_contact_email": "ada@example.com",
        "primary_contact_phone": "+44 20 7946 0100",
        "mailing_address_line_1": "1 Main Street",
        "mailing_address_line_2": "Floor 2",
        "mailing_city": "Springfield",
        "mailing_state": "IL",
        "mailing_zipcode": "62701",
        "mailing_country": "US",
        "reason": "The invoices of two months are unpaid.",
        "text": "They move to the annual plan in March; ask for Ada.",
        "updated_by": "platform:operator",
        "meta_data": {"segment": "enterprise"},
        "patches": {"segment": "enterprise", "account_manager": None},
        "requested_by": "platform:operator",
        "deletes_at": "2026-02-28T12:00:00Z",
        "stage": DeletionStage.WAITING.value,
        "members_by_role": {"owner": 1, "admin": 2, "billing": 0, "member": 14, "viewer": 0},
    }
    descriptions = {
        "idp_org_id": "The identity provider's id of the organization; no two tenants have the same.",
        "name": "The organization's name.",
        "slug": "A short name for addresses; no two tenants have the same.",
        "primary_contact_name": "Name of the primary contact; empty without one.",
        "primary_contact_email": "E-mail address of the primary contact; empty without one.",
        "primary_contact_phone": "Telephone number of the primary contact; empty without one.",
        "mailing_address_line_1": "Street and number of the mailing address.",
        "mailing_address_line_2": "Second line of the mailing address.",
        "mailing_city": "City of the mailing address.",
        "mailing_state": "State or region of the mailing address.",
        "mailing_zipcode": "Postal code of the mailing address.",
        "mailing_country": "Country of the mailing address.",
        "meta_data": "Values of the tenant's custom fields, and any other values, by key.",
        "tenant_id": "The tenant.",
        "stage": "`waiting` until rows are deleted; then how far that is.",
        "text": "The notes; empty without any.",
        "reason": "The tenant's owners and admins can read it in the audit trail.",
    }


class TenantSchema(Documented, RowSchema):
    """A tenant."""

    idp_org_id = Str()
    name = Str()
    slug = Str()
    plan_name = Str(description="The plan that the tenant has.")
    primary_contact_name = Str()
    primary_contact_email = Str()
    primary_contact_phone = Str()
    mailing_address_line_1 = Str()
    mailing_address_line_2 = Str()
    mailing_city = Str()
    mailing_state = Str()
    mailing_zipcode = Str()
    mailing_country = Str()
    is_active = Bool(description="False: the tenant is suspended.")


class ContactEmail(Scalar, ma.fields.Raw):
    """An e-mail address, or ``""`` for none."""

    accepts = Email.accepts
    keywords = {**Email.keywords, "anyOf": [{"type": "string", "format": "email"}, {"const": ""}]}

    def from_json(self, value: Any) -> str:
        return "" if value == "" else str(super().from_json(value))


SLUG = "Lower-case letters and digits, with single hyphens between them."


class TenantCreateSchema(Documented):
    """A new tenant. Without a slug, one is derived from the name."""

    idp_org_id = Name(required=True, min_length=1)
    name = Name(required=True, min_length=1)
    slug = Str(min_length=1, max_length=MAX_KEY, pattern=slugs.PATTERN, description=SLUG)
    primary_contact_name = Name()
    primary_contact_email = ContactEmail()
    primary_contact_phone = Str()
    mailing_address_line_1 = Str()
    mailing_address_line_2 = Str()
    mailing_city = Str()
    mailing_state = Str()
    mailing_zipcode = Str()
    mailing_country = Str()
    meta_data = JsonObject()


class TenantUpdateSchema(TenantCreateSchema):
    """The fields to change. Only a platform credential can change ``idp_org_id``."""

    class Meta(TenantCreateSchema.Meta):
        exclude = ("meta_data",)  # it has an endpoint of its own

    idp_org_id = Name(min_length=1)
    name = Name(min_length=1)
    slug = Str(
        min_length=1, max_length=MAX_KEY, description=f"{SLUG} The current slug may have any form."
    )


class TenantMetaDataSchema(Documented, AnswerSchema):
    """A tenant's metadata; its ETag is the tenant's."""

    tenant_id = Uuid(attribute="id")
    meta_data = JsonObject()


class TenantMetaDataPatchSchema(Documented):
    """A merge patch of a tenant's metadata."""

    patches = JsonObject(required=True, description="A merge patch (RFC 7396): null removes a key.")


class TenantQuerySchema(Documented, MetaDataQuerySchema):
    """Filters of the list of tenants."""

    as_json = True

    is_active = Bool(description="Only active tenants, or only suspended ones.")
    slug = Str(description="Only the tenant with this slug.")
    idp_org_id = Str(description="Only the tenant with this id of the identity provider's.")
    plan_name = Str(description="Only tenants that have this plan.")
    q = Str(min_length=MIN_QUERY, max_length=MAX_QUERY, metadata=BY_WORDS)
    plan_ends_before = AwareDateTime(
        description="Only tenants whose assigned plan, such as a trial, ends before this time."
    )
    is_at_limit = Bool(
        description="Only tenants that have used up a limit of a current period, or only others."
        " Seats do not count, and of a limit `warn_at` must have 100. At most 1,000 are found."
    )


class TenantDeletionRequestSchema(Documented):
    """The tenant's slug, as a confirmation."""

    slug = Str(required=True, description="The tenant's slug, as a confirmation.")


class TenantDeletionSchema(Documented, AnswerSchema):
    """A requested deletion of a tenant."""

    tenant_id = Uuid()
    slug = Str()
    requested_at = AwareDateTime(description="When the deletion was requested (UTC).")
    requested_by = Str(description="Who requested it.")
    deletes_at = AwareDateTime(description="The tenant is deleted soon after this moment.")
    stage = Choice(DeletionStage)


class SuspensionSchema(Documented):
    """Why the tenant is suspended."""

    reason = Str(required=True, min_length=1, max_length=MAX_REASON)


class TenantNotesUpdateSchema(Documented):
    """The new notes, which replace the old ones."""

    text = Str(required=True, max_length=MAX_NOTES)


class TenantNotesSchema(Documented, AnswerSchema):
    """The platform's own notes on a tenant."""

    text = Str()
    updated_at = AwareDateTime(nullable=True, description="Null before the first.")
    updated_by = Str(nullable=True, description="Who changed them last.")


class TenantCountsSchema(Documented, AnswerSchema):
    """What a tenant has. A number is null if the credential may not read what it counts."""

    tenant_id = Uuid()
    active_users = Int(nullable=True, description="Users who are active.")
    inactive_users = Int(nullable=True, description="Users who were deactivated.")
    active_members = Int(nullable=True, description="Memberships that are active.")
    ended_members = Int(nullable=True, description="Memberships that have ended.")
    members_by_role = JsonObject(nullable=True, description="The active memberships of each role.")
    open_subscriptions = Int(nullable=True, description="Subscriptions that have not ended.")
    overrides = Int(nullable=True, description="Feature overrides.")
    custom_fields = Int(nullable=True, description="Custom fields, without archived ones.")
    api_keys = Int(nullable=True, description="API keys, without revoked ones.")
    webhook_endpoints = Int(nullable=True, description="Webhook endpoints.")
    open_deliveries = Int(
        nullable=True, description="Deliveries to the endpoints that have further attempts."
    )


class ActiveQuerySchema(Schema):
    """The new state."""

    is_active = Bool(
        required=True,
        description="True activates it; false suspends a tenant, or ends a membership.",
    )

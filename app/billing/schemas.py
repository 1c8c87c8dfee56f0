"""Requests and answers of /v1/billing/customers and /v1/billing/providers."""

from __future__ import annotations

from app.core.http.pagination import ONE_TENANT, PageQuerySchema
from app.core.validation.fields import AwareDateTime, Bool, Choice, Int, JsonObject, Str, Uuid
from app.core.validation.schemas import AnswerSchema, RowSchema, Schema
from app.subscriptions.models import ProviderName


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "customer_id": "cus_9s6X", "bp_subscription_id": "sub_1PqR", "title": "Stripe", "repaired": {"class": 2}, "error": "",
    }  # fmt: skip
    descriptions = {
        "tenant_id": "The customer's tenant.",
        "provider": "The billing provider.",
        "customer_id": "The provider's id of the customer.",
        "is_manual": "True: it was set here; false: the customer's metadata at the provider says it.",
    }


class BillingCustomerSchema(Documented, RowSchema):
    """The tenant of a customer at a billing provider."""

    tenant_id = Uuid()
    provider = Choice(ProviderName)
    customer_id = Str()
    is_manual = Bool()


class BillingCustomerSetSchema(Documented):
    """The customer's tenant."""

    tenant_id = Uuid(required=True)


class BillingCustomerQuerySchema(Documented, PageQuerySchema):
    """Filters of the list; a customer has to match all."""

    as_json = True

    tenant_id = Uuid(metadata=ONE_TENANT)
    provider = Choice(ProviderName, description="Only customers of this billing provider.")
    customer_id = Str(description="Only the customer with this id.")


class WaitingCustomerSchema(Documented, AnswerSchema):
    """A customer at a billing provider whose events wait for a tenant."""

    has_pages = False

    provider = Choice(ProviderName)
    customer_id = Str(
        description="The provider's id of the customer; empty where no event says it."
    )
    bp_subscription_id = Str(description="The provider's id of the subscription.")
    event_id = Uuid(description="The oldest event that waits.")
    events = Int(description="How many of its events wait.")
    since = AwareDateTime(description="When the oldest came (UTC).")


class BillingProviderSchema(Documented, AnswerSchema):
    """A billing provider: how it is configured, and the last comparison with it."""

    has_pages = False

    provider = Choice(ProviderName)
    title = Str(description="Its name for people.")
    has_receiver = Bool(description="Whether its events are received.")
    has_api_key = Bool(description="Whether subscriptions are read from it, and compared with it.")
    last_event_at = AwareDateTime(nullable=True, description="When its last event came (UTC).")
    waiting = Int(description="How many of its events wait for a tenant.")
    is_comparing = Bool(description="Whether a comparison is under way.")
    started_at = AwareDateTime(nullable=True, description="When the last comparison began (UTC).")
    finished_at = AwareDateTime(
        nullable=True, description="When a comparison was last complete (UTC)."
    )
    compared = Int(description="How many subscriptions the last comparison has looked at.")
    created = Int(description="How many of the provider's were added.")
    unmatched = Int(description="How many of the provider's have no known tenant.")
    missing = Int(description="How many the provider does not know; the next comparison ends them.")
    repaired = JsonObject(description="How many were repaired, by what differed.")
    error = Str(description="Why the comparison cannot continue; empty if it can.")

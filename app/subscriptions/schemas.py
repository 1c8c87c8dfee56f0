"""Requests and answers of /v1/billing/subscriptions."""

from __future__ import annotations

import marshmallow as ma

from app.core.http.includes import Include, own_column
from app.core.http.pagination import ONE_TENANT, PageQuerySchema
from app.core.validation.fields import (
    AwareDateTime,
    Bool,
    Choice,
    Email,
    Int,
    ListOf,
    Literal,
    Nested,
    Scalar,
    Str,
    Uuid,
)
from app.core.validation.schemas import AnswerSchema, RowSchema, Schema
from app.subscriptions.models import ProviderName
from app.subscriptions.service import is_managed
from app.subscriptions.statuses import StatusClass, vocabulary_text

CYCLES = ("weekly", "monthly", "quarterly", "semiannual", "annual")


class Documented(Schema):
    """Descriptions and examples of the fields that the schemas here share."""

    examples = {
        "bp_subscription_id": "sub_1PqR",
        "bp_customer_id": "cus_9s6X",
        "bp_plan_id": "price_growth",
        "bp_status": "active",
        "plan_name": "growth",
        "billing_cycle": "monthly",
        "per_cycle_billing_amount": 4900,
        "billing_address_line_1": "1 Main Street",
        "billing_city": "Springfield",
        "billing_state": "IL",
        "billing_zip": "62701",
        "billing_country": "US",
        "billing_email": "ap@example.com",
        "billing_phone": "+44 20 7946 0100",
        "billing_contact_name": "Ada Lovelace",
        "send_invoice_days_before_due": 14,
        "reason": "too expensive",
    }
    descriptions = {
        "bp_subscription_id": "The billing provider's id of the subscription.",
        "bp_customer_id": "The billing provider's id of the customer.",
        "bp_plan_id": "The billing provider's id of the plan or price.",
        "bp_status": "The billing provider's word, verbatim.",
        "plan_name": "The name of the plan preset that the tenant gets.",
        "is_free_trial": "Whether it is a free trial.",
        "start_date": "When the subscription began (UTC).",
        "auto_renew": "Whether it is renewed at the end of the period.",
        "billing_cycle": "How often it is billed.",
        "per_cycle_billing_amount": "What one cycle costs, in minor units of the currency (cents).",
        "billing_address_line_1": "Street and number of the billing address.",
        "billing_city": "City of the billing address.",
        "billing_state": "State or region of the billing address.",
        "billing_zip": "Postal code of the billing address.",
        "billing_country": "Country of the billing address.",
        "billing_email": "Where invoices are sent.",
        "billing_phone": "Telephone number of the billing contact.",
        "billing_contact_name": "Name of the billing contact.",
        "send_invoice_days_before_due": "How many days before it is due an invoice is sent.",
        "send_email_receipts": "Whether receipts are sent by e-mail.",
        "send_paper_receipts": "Whether receipts are sent on paper.",
        "at_period_end": "False: ends now. True: ends with the paid period.",
    }


class SubscriptionSchema(Documented, RowSchema):
    """A subscription."""

    bp_subscription_id = Str()
    bp_customer_id = Str()
    bp_plan_id = Str()
    bp_status = Str()
    plan_name = Str()
    is_free_trial = Bool()
    start_date = AwareDateTime()
    auto_renew = Bool()
    billing_cycle = Str(metadata={"enum": list(CYCLES)})
    per_cycle_billing_amount = Int(description="In minor units of the currency (cents).")
    billing_address_line_1 = Str()
    billing_city = Str()
    billing_state = Str()
    billing_zip = Str()
    billing_country = Str()
    billing_email = Str()
    billing_phone = Str()
    billing_contact_name = Str()
    send_invoice_days_before_due = Int()
    send_email_receipts = Bool()
    send_paper_receipts = Bool()


class SubscriptionCreateSchema(Documented):
    """A new subscription, as the provider knows it."""

    bp_subscription_id = Str(required=True, min_length=1, max_length=255)
    bp_customer_id = Str(required=True)
    bp_plan_id = Str(required=True)
    bp_status = Str(required=True)
    plan_name = Str(required=True, min_length=1, max_length=255)
    is_free_trial = Bool()
    start_date = AwareDateTime(required=True)
    auto_renew = Bool()
    billing_cycle = Literal(*CYCLES, required=True)
    per_cycle_billing_amount = Int(ge=0, required=True)
    billing_address_line_1 = Str()
    billing_city = Str()
    billing_state = Str()
    billing_zip = Str()
    billing_country = Str()
    billing_phone = Str()
    billing_contact_name = Str(max_length=255)
    billing_email = Email()
    send_invoice_days_before_due = Int(ge=0, le=365)
    send_email_receipts = Bool()
    send_paper_receipts = Bool()


class SubscriptionUpdateSchema(SubscriptionCreateSchema):
    """The fields to change; null is refused."""

    class Meta(SubscriptionCreateSchema.Meta):
        exclude = ("bp_subscription_id",)  # it never changes

    def on_bind_field(self, field_name: str, field_obj: ma.fields.Field) -> None:
        field_obj.required = False


class SubscriptionCancelSchema(Documented):
    """A cancellation to record."""

    at_period_end = Bool(load_default=False)
    reason = Str(
        max_length=500,
        nullable=True,
        load_default=None,
        description="Why it is cancelled; null without a reason.",
    )
    canceled_at = AwareDateTime(description="By default now.")


class SourceTimestamp(Scalar, ma.fields.String):
    """A moment in a header; documented as text, because generated clients send no other header."""

    accepts, keywords = AwareDateTime.accepts, AwareDateTime.keywords


class SourceHeadersSchema(Schema):
    """The provider's time of an update."""

    source_timestamp = SourceTimestamp(
        data_key="X-Source-Timestamp",
        description="The provider's time of the values: RFC 3339, or Unix time. An update that is not"
        " newer than the newest applied one is ignored. Its answer is 200 with the unchanged row and"
        " `X-Update-Ignored: stale`. Send all the provider's fields each time. Only for platform"
        " credentials.",
    )


class SubscriptionQuerySchema(Documented, PageQuerySchema):
    """Filters of the list; a subscription has to match all."""

    as_json = True

    tenant_id = Uuid(metadata=ONE_TENANT)
    bp_subscription_id = Str(description="Only the subscription with this id of the provider's.")
    bp_customer_id = Str(description="Only subscriptions of this customer of the provider's.")
    bp_status = Str(description="Only subscriptions with exactly this status.")
    status_class = Choice(
        StatusClass,
        description="Only subscriptions whose `bp_status` is in this class: "
        f"{vocabulary_text()}. All other words are `unknown`. Where a provider's events keep the"
        " subscription current, its class is the provider's.",
    )


class ForceSchema(Schema):
    """Whether to change what the provider's events decide."""

    force = Bool(
        load_default=False,
        description="Change it even if the provider's events keep the subscription current; the next"
        " one may change it again. Only for superadmins.",
    )


class CancellationSchema(AnswerSchema):
    """The recorded cancellation."""

    examples = {"reason": "Too expensive."}
    descriptions = {
        "canceled_at": "When it was cancelled (UTC).",
        "at_period_end": "Whether it ends with the paid period, and not at once.",
        "reason": "Why it was cancelled; null without a reason.",
    }

    canceled_at = AwareDateTime()
    at_period_end = Bool(attribute="cancel_at_period_end")
    reason = Str(nullable=True, attribute="cancel_reason")


CANCELLATION = Include(
    "cancellation",
    Nested(CancellationSchema, nullable=True, description="Null where none is recorded."),
    lambda rows: [None if row.canceled_at is None else row for row in rows],
)
STATUS_CLASS = own_column(
    "status_class", Choice(StatusClass, description="The class of `bp_status`.")
)
SOURCE_TIMESTAMP = own_column(
    "source_timestamp",
    AwareDateTime(
        nullable=True, description="`X-Source-Timestamp` of the newest applied update, or null."
    ),
)


class BillingSchema(AnswerSchema):
    """What the events of a billing provider say about a subscription."""

    examples = {"currency": "EUR"}
    descriptions = {
        "bp_provider": "Whose events keep the subscription current; null: a client of the API does.",
        "currency": "ISO 4217, in upper case; empty where it is not known.",
        "trial_end": "When the trial ends or ended (UTC); null without one.",
        "current_period_end": "When the paid period ends (UTC); null where it is not known.",
        "collection_is_paused": "True: it is served, but not charged.",
        "read_at": "When what is shown was read from the provider (UTC); null where events say it.",
    }

    bp_provider = Choice(ProviderName, nullable=True)
    currency = Str()
    trial_end = AwareDateTime(nullable=True)
    current_period_end = AwareDateTime(nullable=True)
    collection_is_paused = Bool()
    read_at = AwareDateTime(nullable=True)


class SubscriptionItemSchema(AnswerSchema):
    """What a subscription is for."""

    examples = {"id": "si_1PqR", "price": "price_growth", "lookup_key": "growth", "quantity": 5}
    descriptions = {
        "id": "The provider's id of the item; empty without one.",
        "price": "The provider's id of the price.",
        "lookup_key": "The price's own name at the provider; empty without one.",
        "quantity": "Null for a price that is metered.",
    }

    id = Str()
    price = Str()
    lookup_key = Str()
    quantity = Int(nullable=True)


class Items(ListOf):
    """The stored items, which have the form of their schema already."""

    def to_json(self, value: object) -> object:
        return value


IS_MANAGED = Include(
    "is_managed",
    Bool(description="Whether the provider's events are received, which then alone change it."),
    lambda rows: [is_managed(row.bp_provider) for row in rows],
)
BILLING = Include(
    "billing",
    Nested(BillingSchema, description="What its billing provider says beside the fields."),
    lambda rows: rows,
)
ITEMS = own_column(
    "items", Items(Nested(SubscriptionItemSchema), description="Empty without a `bp_provider`.")
)

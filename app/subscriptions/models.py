"""Subscriptions, copied from the billing provider."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import JSON, BigInteger, Index, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db.models import UNBOUNDED, Moment, TenantRow, updated_index
from app.core.json_text import Json


class ProviderName(StrEnum):
    """The billing providers whose events the service can receive."""

    STRIPE = "stripe"
    PADDLE = "paddle"
    CHARGEBEE = "chargebee"
    LEMONSQUEEZY = "lemonsqueezy"
    POLAR = "polar"


class Subscription(TenantRow):
    """One subscription at the billing provider. The amount is in minor units of its currency.

    ``bp_status`` is the provider's word, ``status_class`` its class (:func:`statuses.with_class`).
    ``source_timestamp`` is the provider's time of the newest applied update. The columns
    ``canceled_at``, ``cancel_at_period_end`` and ``cancel_reason`` describe the recorded
    cancellation; if there is none, all three are None.

    ``bp_provider`` is the provider whose events, or reads, keep the row current; None where a
    client of the API does. The columns after it are only set with it. ``items`` is a list of ``id``,
    ``price``, ``lookup_key`` and ``quantity``. ``limits`` are the limits that quantities have set,
    by key. ``read_at`` is our time just before the read that the row shows. ``missing_since`` is
    when a comparison did not find the subscription at the provider.
    """

    __tablename__ = "subscriptions"

    bp_subscription_id: Mapped[str] = mapped_column(Text)
    bp_customer_id: Mapped[str] = mapped_column(Text, info=UNBOUNDED)
    bp_plan_id: Mapped[str] = mapped_column(Text, info=UNBOUNDED)
    bp_status: Mapped[str] = mapped_column(Text, info=UNBOUNDED)
    status_class: Mapped[str] = mapped_column(Text)
    plan_name: Mapped[str] = mapped_column(Text)
    is_free_trial: Mapped[bool] = mapped_column(default=False)
    start_date: Mapped[datetime] = mapped_column(Moment)
    auto_renew: Mapped[bool] = mapped_column(default=True)
    billing_cycle: Mapped[str] = mapped_column(Text)
    per_cycle_billing_amount: Mapped[int] = mapped_column(BigInteger)
    billing_address_line_1: Mapped[str] = mapped_column(Text, default="", info=UNBOUNDED)
    billing_city: Mapped[str] = mapped_column(Text, default="", info=UNBOUNDED)
    billing_state: Mapped[str] = mapped_column(Text, default="", info=UNBOUNDED)
    billing_zip: Mapped[str] = mapped_column(Text, default="", info=UNBOUNDED)
    billing_country: Mapped[str] = mapped_column(Text, default="", info=UNBOUNDED)
    billing_email: Mapped[str] = mapped_column(Text, default="")
    billing_phone: Mapped[str] = mapped_column(Text, default="", info=UNBOUNDED)
    billing_contact_name: Mapped[str] = mapped_column(Text, default="")
    send_invoice_days_before_due: Mapped[int] = mapped_column(BigInteger, default=0)
    send_email_receipts: Mapped[bool] = mapped_column(default=True)
    send_paper_receipts: Mapped[bool] = mapped_column(default=False)
    source_timestamp: Mapped[datetime | None] = mapped_column(Moment)
    canceled_at: Mapped[datetime | None] = mapped_column(Moment)
    cancel_at_period_end: Mapped[bool | None]
    cancel_reason: Mapped[str | None] = mapped_column(Text)
    bp_provider: Mapped[str | None] = mapped_column(Text)
    currency: Mapped[str] = mapped_column(Text, default="", server_default="")
    trial_end: Mapped[datetime | None] = mapped_column(Moment)
    current_period_end: Mapped[datetime | None] = mapped_column(Moment)
    items: Mapped[list[dict[str, Json]]] = mapped_column(
        JSON, default=list, server_default="[]", info=UNBOUNDED
    )
    collection_is_paused: Mapped[bool] = mapped_column(default=False, server_default="false")
    limits: Mapped[dict[str, int]] = mapped_column(JSON, default=dict, server_default="{}")
    read_at: Mapped[datetime | None] = mapped_column(Moment)
    missing_since: Mapped[datetime | None] = mapped_column(Moment)

    constraints = (
        UniqueConstraint("tenant_id", "bp_subscription_id"),
        Index(None, "tenant_id", "created_at", "id"),
        Index(None, "created_at", "id"),
        updated_index(),
        Index(None, "bp_subscription_id"),
        # A customer id has any length. A hash index does not limit the length, a B-tree does.
        Index(None, "bp_customer_id", postgresql_using="hash"),
        Index(None, "status_class", "created_at", "id"),
        Index(None, "plan_name", postgresql_where=text("status_class <> 'ended'")),
        Index(None, "bp_provider", "id", postgresql_where=text("bp_provider IS NOT NULL")),
    )

"""The tables, as far as the measured requests touch them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, DateTime
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from uuid_utils.compat import uuid7


def utcnow() -> datetime:
    return datetime.now(UTC)


class Base(DeclarativeBase):
    type_annotation_map = {datetime: DateTime(timezone=True), dict[str, Any]: JSON}


class TenantRow(Base):
    """What every row of a tenant has; an UPDATE names the version it read."""

    __abstract__ = True

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid7)
    created_at: Mapped[datetime] = mapped_column(default=utcnow)
    updated_at: Mapped[datetime] = mapped_column(default=utcnow)
    version: Mapped[int]


class OrganizationRow(TenantRow):
    __abstract__ = True

    idp_org_id: Mapped[str]
    created_by_user_id: Mapped[str]
    updated_by_user_id: Mapped[str]


class User(OrganizationRow):
    __tablename__ = "users"

    idp_user_id: Mapped[str]
    email: Mapped[str]
    first_name: Mapped[str]
    last_name: Mapped[str]
    is_active: Mapped[bool]
    meta_data: Mapped[dict[str, Any]]


class Membership(OrganizationRow):
    __tablename__ = "memberships"

    user_id: Mapped[UUID]
    idp_membership_id: Mapped[str]
    role: Mapped[str]
    is_active: Mapped[bool]


class CustomField(TenantRow):
    __tablename__ = "custom_fields"

    entity_type: Mapped[str]
    field_key: Mapped[str]
    field_type: Mapped[str]
    options: Mapped[list[str] | None] = mapped_column(JSON)
    is_searchable: Mapped[bool]
    is_active: Mapped[bool]


class FieldIndex(Base):
    __tablename__ = "custom_field_indexes"

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    field_id: Mapped[UUID] = mapped_column(primary_key=True)
    state: Mapped[str]


class IndexRow(Base):
    __tablename__ = "custom_field_index_rows"

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    field_id: Mapped[UUID] = mapped_column(primary_key=True)
    entity_id: Mapped[UUID] = mapped_column(primary_key=True)
    ordinal: Mapped[int] = mapped_column(primary_key=True)
    text_key: Mapped[str | None]


class Tenant(Base):
    __tablename__ = "tenants"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    plan_name: Mapped[str]
    is_active: Mapped[bool]


class Subscription(TenantRow):
    __tablename__ = "subscriptions"

    bp_subscription_id: Mapped[str]
    bp_customer_id: Mapped[str]
    bp_plan_id: Mapped[str]
    bp_status: Mapped[str]
    plan_name: Mapped[str]
    is_free_trial: Mapped[bool]
    start_date: Mapped[datetime]
    auto_renew: Mapped[bool]
    billing_cycle: Mapped[str]
    per_cycle_billing_amount: Mapped[int]
    billing_address_line_1: Mapped[str]
    billing_city: Mapped[str]
    billing_state: Mapped[str]
    billing_zip: Mapped[str]
    billing_country: Mapped[str]
    billing_email: Mapped[str]
    billing_phone: Mapped[str]
    billing_contact_name: Mapped[str]
    send_invoice_days_before_due: Mapped[int]
    send_email_receipts: Mapped[bool]
    send_paper_receipts: Mapped[bool]


class PlanPreset(Base):
    __tablename__ = "plan_presets"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    flags: Mapped[list[dict[str, Any]]] = mapped_column(JSON)


class FeatureOverride(TenantRow):
    __tablename__ = "feature_overrides"

    plan_preset_id: Mapped[UUID]
    flag_key: Mapped[str]
    flag_value: Mapped[Any] = mapped_column(JSON)
    expires_at: Mapped[datetime | None]


class WebhookEvent(Base):
    __tablename__ = "webhook_events"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    created_at: Mapped[datetime] = mapped_column(default=utcnow)
    updated_at: Mapped[datetime] = mapped_column(default=utcnow)
    version: Mapped[int] = mapped_column(default=1)
    source: Mapped[str]
    external_id: Mapped[str]
    event_type: Mapped[str]
    status: Mapped[str] = mapped_column(default="pending")
    detail: Mapped[str] = mapped_column(default="")
    attempts: Mapped[int] = mapped_column(default=0)
    replays: Mapped[int] = mapped_column(default=0)
    next_attempt_at: Mapped[datetime] = mapped_column(default=utcnow)
    headers: Mapped[dict[str, Any]] = mapped_column(default=dict)
    body: Mapped[bytes]
    digest: Mapped[str]
    request_id: Mapped[str]


class AuditEvent(Base):
    __tablename__ = "audit_events"

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid7)
    created_at: Mapped[datetime] = mapped_column(default=utcnow)
    actor: Mapped[str]
    action: Mapped[str]
    target_type: Mapped[str]
    target_id: Mapped[str]
    before: Mapped[dict[str, Any]]
    after: Mapped[dict[str, Any]]
    request_id: Mapped[str]

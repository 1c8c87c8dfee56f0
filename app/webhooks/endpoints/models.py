"""Webhook endpoints: where events are delivered, and what the sender keeps about each."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from sqlalchemy import ARRAY, BigInteger, ForeignKeyConstraint, Index, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db.models import Attributed, Moment, Row, updated_index
from app.extensions import Model


class Signing(StrEnum):
    """How deliveries are signed (Standard Webhooks)."""

    V1 = "v1"  # HMAC-SHA256 with a shared secret
    V1A = "v1a"  # Ed25519 with a private key


class DisabledReason(StrEnum):
    """Why an endpoint is not active, unless somebody has switched it off."""

    GONE = "gone"  # it answered 410
    FAILING = "failing"  # nothing but failures for too long
    UNTESTED = "untested"  # it was created so, and gets tests only


class WebhookEndpoint(Attributed, Row):
    """A URL that gets the events of ``types``. No column is secret.

    ``tenant_id`` is :data:`app.core.db.tenancy.PLATFORM_TENANT_ID` for the platform's endpoints, so
    it is not a foreign key.
    """

    __tablename__ = "webhook_endpoints"
    __table_args__ = (Index(None, "id"), Index(None, "created_at", "id"), updated_index())

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True, sort_order=-1)
    url: Mapped[str] = mapped_column(Text)
    types: Mapped[list[str]] = mapped_column(ARRAY(Text))
    description: Mapped[str] = mapped_column(Text)
    header_names: Mapped[list[str]] = mapped_column(ARRAY(Text))
    rate_limit: Mapped[int | None] = mapped_column(BigInteger)
    signing: Mapped[str] = mapped_column(Text)
    public_key: Mapped[str | None] = mapped_column(Text)
    old_secret_until: Mapped[datetime | None] = mapped_column(Moment)
    is_active: Mapped[bool]
    disabled_reason: Mapped[str | None] = mapped_column(Text)


class WebhookEndpointState(Model):
    """The sender's state of an endpoint, and its secrets, encrypted with ``SECRETS_KEY``.

    ``headers`` and ``old_secret`` are JSON objects. ``failing_since`` is the time of the first
    failure since the last success. ``window_count`` attempts were made in the second that began at
    ``window_start``.
    """

    __tablename__ = "webhook_endpoint_states"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "endpoint_id"],
            ["webhook_endpoints.tenant_id", "webhook_endpoints.id"],
            ondelete="CASCADE",
        ),
        Index(
            "ix_webhook_endpoint_states_failing",
            "tenant_id",
            "endpoint_id",
            postgresql_where=text("failing_since IS NOT NULL"),
        ),
    )

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    endpoint_id: Mapped[UUID] = mapped_column(primary_key=True)
    secret: Mapped[str] = mapped_column(Text)
    old_secret: Mapped[str | None] = mapped_column(Text)
    headers: Mapped[str | None] = mapped_column(Text)
    failing_since: Mapped[datetime | None] = mapped_column(Moment)
    window_start: Mapped[datetime | None] = mapped_column(Moment)
    window_count: Mapped[int] = mapped_column(BigInteger, default=0)

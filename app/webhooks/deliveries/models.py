"""Deliveries: an event for an endpoint, and the result."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from uuid import UUID, uuid4

from sqlalchemy import BigInteger, Index, SmallInteger, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.clock import utcnow
from app.core.db.models import Moment
from app.extensions import Model


class DeliveryStatus(StrEnum):
    """The state of a delivery."""

    PENDING = "pending"  # the next attempt is at next_attempt_at
    SENDING = "sending"  # a sender has claimed it, until next_attempt_at
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # there are no further attempts


class WebhookDelivery(Model):
    """An event for an endpoint: at most one row for both.

    ``event_id`` is the UUID of an event, or of a test, whose body is in ``body``. There is no
    foreign key to the endpoint, whose deletion would take as long as it has deliveries; a job
    deletes them. ``next_attempt_at`` is None after the last attempt.
    """

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        Index(None, "id"),
        Index(None, "tenant_id", "endpoint_id", "event_id", unique=True),
        Index(None, "tenant_id", "endpoint_id", "created_at", "id"),
        Index(None, "created_at", postgresql_using="brin"),
        Index(
            "ix_webhook_deliveries_failed",
            "created_at",
            "id",
            postgresql_where=text("status = 'failed'"),
        ),
        Index(
            "ix_webhook_deliveries_due",
            "tenant_id",
            "endpoint_id",
            "next_attempt_at",
            postgresql_where=text("next_attempt_at IS NOT NULL"),
        ),
        Index(
            "ix_webhook_deliveries_sending",
            "tenant_id",
            "endpoint_id",
            postgresql_where=text("status = 'sending'"),
        ),
    )

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    created_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)
    endpoint_id: Mapped[UUID]
    event_id: Mapped[UUID]
    type: Mapped[str] = mapped_column(Text)
    body: Mapped[str | None] = mapped_column(Text)
    status: Mapped[str] = mapped_column(Text, default=DeliveryStatus.PENDING.value)
    attempts: Mapped[int] = mapped_column(SmallInteger, default=0)
    attempted_at: Mapped[datetime | None] = mapped_column(Moment)
    next_attempt_at: Mapped[datetime | None] = mapped_column(Moment, default=utcnow)
    response_code: Mapped[int | None] = mapped_column(SmallInteger)
    response_body: Mapped[str | None] = mapped_column(Text)
    error: Mapped[str | None] = mapped_column(Text)
    duration_ms: Mapped[int | None] = mapped_column(BigInteger)


class WebhookFeed(Model):
    """The only row: the last position whose event has its deliveries."""

    __tablename__ = "webhook_feed"

    id: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    position: Mapped[int] = mapped_column(BigInteger)

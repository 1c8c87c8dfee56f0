"""The inbox: the events that providers posted."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import JSON, BigInteger, Index, LargeBinary, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.clock import utcnow
from app.core.db.models import Moment, Row


class Status(StrEnum):
    """The state of an event. The worker changes ``pending``; only a replay changes the others.

    ``waiting_tenant``: a billing event without a known tenant. It is made pending when its tenant
    is known.
    """

    PENDING = "pending"
    SUCCEEDED = "succeeded"
    IGNORED = "ignored"
    FAILED = "failed"
    WAITING_TENANT = "waiting_tenant"


class WebhookEvent(Row):
    """One event of one provider, with its body as it was received.

    ``replay_key`` is a value of the signature that may be used once. ``detail`` is why an event
    was ignored or waits, or the error of its last attempt. ``body`` is None once the payload was
    removed; its ``digest`` (SHA-256) stays. Secret headers are stored as ``[redacted]``.
    ``bp_subscription_id``: the subscription that a billing event is about.
    ``applied_parts``: how many of its parts (recipients, members) are applied, while it is pending.
    """

    __tablename__ = "webhook_events"
    __table_args__ = (
        UniqueConstraint("source", "external_id"),
        Index(
            "uq_webhook_events_source_replay_key",
            "source",
            "replay_key",
            unique=True,
            postgresql_where=text("replay_key IS NOT NULL"),
        ),
        Index(None, "created_at", "id"),
        Index(
            "ix_webhook_events_pending",
            "next_attempt_at",
            postgresql_where=text("status = 'pending'"),
        ),
        Index(
            "ix_webhook_events_pending_of_source",
            "source",
            "next_attempt_at",
            postgresql_where=text("status = 'pending'"),
        ),
        Index(
            "ix_webhook_events_waiting_tenant",
            "source",
            "created_at",
            postgresql_where=text("status = 'waiting_tenant'"),
        ),
        Index(
            "ix_webhook_events_of_billing",
            "source",
            "created_at",
            postgresql_where=text(
                "source IN ('stripe', 'paddle', 'chargebee', 'lemonsqueezy', 'polar')"
            ),
        ),
        Index(
            "ix_webhook_events_failed",
            "created_at",
            "id",
            postgresql_where=text("status = 'failed'"),
        ),
        Index(
            "ix_webhook_events_of_subscription",
            "bp_subscription_id",
            "created_at",
            "id",
            postgresql_where=text("bp_subscription_id IS NOT NULL"),
        ),
        Index(
            "ix_webhook_events_stored_bodies",
            "processed_at",
            postgresql_where=text("body IS NOT NULL"),
        ),
    )

    source: Mapped[str] = mapped_column(Text)
    external_id: Mapped[str] = mapped_column(Text)
    replay_key: Mapped[str | None] = mapped_column(Text)
    event_type: Mapped[str] = mapped_column(Text)
    status: Mapped[str] = mapped_column(Text, default=Status.PENDING.value)
    detail: Mapped[str] = mapped_column(Text, default="")
    attempts: Mapped[int] = mapped_column(BigInteger, default=0)
    replays: Mapped[int] = mapped_column(BigInteger, default=0)
    applied_parts: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    next_attempt_at: Mapped[datetime | None] = mapped_column(Moment, default=utcnow)
    processed_at: Mapped[datetime | None] = mapped_column(Moment)
    headers: Mapped[dict[str, str]] = mapped_column(JSON)
    bp_subscription_id: Mapped[str | None] = mapped_column(Text)
    body: Mapped[bytes | None] = mapped_column(LargeBinary)
    digest: Mapped[str] = mapped_column(Text)
    request_id: Mapped[str] = mapped_column(Text)

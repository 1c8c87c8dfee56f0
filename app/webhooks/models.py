"""The inbox, and what is known of the identity provider's objects."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, BigInteger, Index, LargeBinary, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.clock import utcnow
from app.core.db.models import Moment, Row
from app.extensions import db


class Status(StrEnum):
    """Where an event stands; only ``pending`` is ever left by itself."""

    PENDING = "pending"
    SUCCEEDED = "succeeded"
    IGNORED = "ignored"
    FAILED = "failed"


class WebhookEvent(Row):
    """One event of one provider, kept as it came; the row is the truth, the queue a doorbell.

    ``replay_key`` is a value of the signature that may be used once. ``detail`` says why an
    event was ignored or what its last attempt failed with. ``body`` is None once only the
    ``digest`` is kept. Of the headers only harmless ones are stored in clear.
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
            "ix_webhook_events_failed",
            "created_at",
            "id",
            postgresql_where=text("status = 'failed'"),
        ),
        Index(
            "ix_webhook_events_kept_bodies",
            "processed_at",
            postgresql_where=text("body IS NOT NULL AND status IN ('succeeded', 'ignored')"),
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
    next_attempt_at: Mapped[datetime | None] = mapped_column(Moment, default=utcnow)
    processed_at: Mapped[datetime | None] = mapped_column(Moment)
    headers: Mapped[dict[str, str]] = mapped_column(JSON)
    body: Mapped[bytes | None] = mapped_column(LargeBinary)
    digest: Mapped[str] = mapped_column(Text)
    request_id: Mapped[str] = mapped_column(Text)


class IdentityObject(db.Model):  # type: ignore[name-defined]
    """What the events so far say of one organization, user or membership.

    A deleted one stays as a tombstone, which a late event cannot undo. Users without a
    membership wait here, and memberships whose user or organization is not known yet
    (``is_waiting``).
    ``state`` is :class:`app.identity_sync.merge_state.State` as JSON; the two ids are a membership's.
    """

    __tablename__ = "identity_objects"
    __table_args__ = (
        Index(
            None,
            "source",
            "organization_id",
            postgresql_where=text("organization_id IS NOT NULL"),
        ),
        Index(None, "source", "user_id", postgresql_where=text("user_id IS NOT NULL")),
        Index("ix_identity_objects_waiting", "updated_at", postgresql_where=text("is_waiting")),
    )

    source: Mapped[str] = mapped_column(Text, primary_key=True)
    kind: Mapped[str] = mapped_column(Text, primary_key=True)
    object_id: Mapped[str] = mapped_column(Text, primary_key=True)
    organization_id: Mapped[str | None] = mapped_column(Text)
    user_id: Mapped[str | None] = mapped_column(Text)
    is_deleted: Mapped[bool]
    is_waiting: Mapped[bool] = mapped_column(default=False)
    state: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)
    updated_at: Mapped[datetime] = mapped_column(Moment, default=utcnow, onupdate=utcnow)

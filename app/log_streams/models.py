"""Log streams: where events are written, and how far each stream has come."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    JSON,
    BigInteger,
    ForeignKeyConstraint,
    Index,
    SmallInteger,
    Text,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db.models import Attributed, Moment, Row, updated_index
from app.core.json_text import Json
from app.extensions import Model


class LogFormat(StrEnum):
    """How a record is written."""

    NATIVE = "native"  # as in the feed
    OCSF = "ocsf"  # of the Open Cybersecurity Schema Framework


class LogStreamState(StrEnum):
    """Whether events are written."""

    ACTIVE = "active"
    PAUSED = "paused"  # somebody has paused it
    ERROR = "error"  # the last attempts failed; there are further ones
    INVALID = "invalid"  # the target refused, or events are gone: somebody must act


RUNNING = (LogStreamState.ACTIVE, LogStreamState.ERROR)


class LogStream(Attributed, Row):
    """A target that gets the events of ``types``. No column is secret.

    ``tenant_id`` is :data:`app.core.db.tenancy.PLATFORM_TENANT_ID` for the platform's streams, so
    it is not a foreign key.
    """

    __tablename__ = "log_streams"
    __table_args__ = (Index(None, "id"), Index(None, "created_at", "id"), updated_index())

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True, sort_order=-1)
    kind: Mapped[str] = mapped_column(Text)
    config: Mapped[dict[str, Json]] = mapped_column(JSON)
    format: Mapped[str] = mapped_column(Text)
    types: Mapped[list[str]] = mapped_column(ARRAY(Text))
    description: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(Text)
    error: Mapped[str | None] = mapped_column(Text)


class LogStreamProgress(Model):
    """How far a stream has come, and its secrets: JSON, encrypted with ``SECRETS_KEY``.

    Events up to ``position`` are written. ``batch_end`` and ``batch_name`` are those of a batch whose
    writing has begun, so that a retry writes the same one. ``claim`` is new for each attempt: an
    attempt whose claim was replaced changes nothing. While an attempt runs, ``next_attempt_at`` is
    the end of its lease; None: nothing is due. All events before ``written_until`` are written.
    ``last_position`` is that of the last record, as the stream's owner sees it.
    """

    __tablename__ = "log_stream_progress"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "stream_id"],
            ["log_streams.tenant_id", "log_streams.id"],
            ondelete="CASCADE",
        ),
        Index(None, "stream_id"),
        Index(None, "position"),
        Index(
            "ix_log_stream_progress_due",
            "next_attempt_at",
            postgresql_where=text("next_attempt_at IS NOT NULL"),
        ),
    )

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    stream_id: Mapped[UUID] = mapped_column(primary_key=True)
    secrets: Mapped[str] = mapped_column(Text)
    position: Mapped[int] = mapped_column(BigInteger)
    batch_end: Mapped[int | None] = mapped_column(BigInteger)
    batch_name: Mapped[str | None] = mapped_column(Text)
    claim: Mapped[UUID | None]
    next_attempt_at: Mapped[datetime | None] = mapped_column(Moment)
    failures: Mapped[int] = mapped_column(SmallInteger, default=0)
    last_error: Mapped[str | None] = mapped_column(Text)
    last_object: Mapped[str | None] = mapped_column(Text)
    last_position: Mapped[str | None] = mapped_column(Text)
    written_at: Mapped[datetime | None] = mapped_column(Moment)
    written_until: Mapped[datetime] = mapped_column(Moment)
    warned_at: Mapped[datetime | None] = mapped_column(Moment)
    tested_at: Mapped[datetime | None] = mapped_column(Moment)
    test_error: Mapped[str | None] = mapped_column(Text)

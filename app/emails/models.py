"""E-mail events, the state of each message, and the suppression list."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import JSON, BigInteger, Index, Text, UniqueConstraint, func, text
from sqlalchemy.orm import Mapped, mapped_column
from uuid_utils.compat import uuid7

from app.core.clock import utcnow
from app.core.db.models import UNBOUNDED, Moment, Row
from app.extensions import Model


class EmailEventRecord(Model):
    """One fact about one recipient of one message; never changed.

    ``webhook_event_id`` and ``ordinal`` name the part of the delivery that it came with, so a
    delivery that is applied again adds nothing. For a mail of this service they are the invitation
    and the attempt. ``address`` is the recipient in lower case.
    """

    __tablename__ = "email_events"
    __table_args__ = (
        UniqueConstraint("webhook_event_id", "ordinal"),
        Index(None, "created_at", "id"),
        Index(None, "address", "created_at", "id"),
        Index("ix_email_events_message_id", func.left(text("message_id"), 255)),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid7)
    created_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)
    webhook_event_id: Mapped[UUID]
    ordinal: Mapped[int] = mapped_column(BigInteger)
    source: Mapped[str] = mapped_column(Text)
    message_id: Mapped[str] = mapped_column(Text, info=UNBOUNDED)
    recipient: Mapped[str] = mapped_column(Text)
    address: Mapped[str] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(Text)
    occurred_at: Mapped[datetime] = mapped_column(Moment)
    reason: Mapped[str] = mapped_column(Text, info=UNBOUNDED)
    response: Mapped[str] = mapped_column(Text, info=UNBOUNDED)
    url: Mapped[str] = mapped_column(Text, info=UNBOUNDED)
    tags: Mapped[list[str]] = mapped_column(JSON, info=UNBOUNDED)
    sender_values: Mapped[dict[str, str]] = mapped_column("metadata", JSON, info=UNBOUNDED)


class EmailMessage(Row):
    """The state of one message for one recipient.

    ``rank`` is the place of ``state`` in :data:`app.emails.events.STATES`; it only rises, whatever
    order the events arrive in. Opens and clicks are counted independently of it.
    """

    __tablename__ = "email_messages"
    __table_args__ = (
        UniqueConstraint("source", "message_id", "address"),
        Index(None, "created_at", "id"),
        Index(None, "address"),
        Index(None, "message_id"),
    )

    source: Mapped[str] = mapped_column(Text)
    message_id: Mapped[str] = mapped_column(Text)
    address: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(Text)
    rank: Mapped[int] = mapped_column(BigInteger)
    state_at: Mapped[datetime | None] = mapped_column(Moment)
    opens: Mapped[int] = mapped_column(BigInteger)
    clicks: Mapped[int] = mapped_column(BigInteger)
    first_opened_at: Mapped[datetime | None] = mapped_column(Moment)
    first_clicked_at: Mapped[datetime | None] = mapped_column(Moment)


class Suppression(Row):
    """One reason not to send e-mail to an address.

    ``suppressed_at`` and ``lifted_at`` are the latest known moments of each; the later of the two
    decides ``is_active``. So the order in which they become known does not matter.
    """

    __tablename__ = "suppressions"
    __table_args__ = (
        UniqueConstraint("address", "cause", "scope"),
        Index(None, "created_at", "id", postgresql_where=text("is_active")),
    )

    address: Mapped[str] = mapped_column(Text)
    cause: Mapped[str] = mapped_column(Text)
    scope: Mapped[str] = mapped_column(Text)
    source: Mapped[str] = mapped_column(Text)
    suppressed_at: Mapped[datetime | None] = mapped_column(Moment)
    lifted_at: Mapped[datetime | None] = mapped_column(Moment)
    is_active: Mapped[bool]

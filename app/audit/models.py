"""The audit trail: one row for each change, in the transaction of the change."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import JSON, BigInteger, Index, Text
from sqlalchemy.orm import Mapped, mapped_column
from uuid_utils.compat import uuid7

from app.core.clock import utcnow
from app.core.db.models import UNBOUNDED, Moment
from app.core.json_text import Json
from app.extensions import Model

ERASED = "[erased]"  # what takes the place of a value that an erasure removes


class AuditEvent(Model):
    """One change of a row: the actor, and the values of the changed fields before and after.

    The application's database role may only read and insert. Each month has a partition;
    :mod:`app.operations.retention` adds and drops partitions. ``tenant_id`` is not a foreign key:
    for changes of no tenant it is :data:`app.core.db.tenancy.PLATFORM_TENANT_ID`.
    """

    __tablename__ = "audit_events"
    __table_args__ = (
        Index(None, "id"),
        Index(None, "tenant_id", "created_at", "id"),
        Index(None, "created_at", "id"),
        Index(None, "target_id", "created_at", "id"),
        Index(None, "actor", "created_at", "id"),
        Index(None, "action", "created_at", "id"),
        {"postgresql_partition_by": "RANGE (id)"},
    )

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid7)
    created_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)
    actor: Mapped[str] = mapped_column(Text)
    action: Mapped[str] = mapped_column(Text)
    target_type: Mapped[str] = mapped_column(Text)
    target_id: Mapped[str] = mapped_column(Text)
    before: Mapped[dict[str, Json]] = mapped_column(JSON, info=UNBOUNDED)
    after: Mapped[dict[str, Json]] = mapped_column(JSON, info=UNBOUNDED)
    request_id: Mapped[str] = mapped_column(Text, default="")


class AuditPosition(Model):
    """The place of an audit row in the order in which changes were committed.

    The order is by ``position``, then by ``number``. The sequencer gives both: an audit row with an
    event has its event's ``position``, any other that of the event before it. ``number`` is that of
    the outbox. Rows that are older than this table have a negative ``number``, and the order of
    their times. ``row_id`` is the target's id; None for one without a UUID. ``version`` and
    ``updated_at`` are the target's after the change; None where they are not known.
    """

    __tablename__ = "audit_positions"
    __table_args__ = (
        Index(None, "tenant_id", "id", unique=True),
        Index(None, "tenant_id", "target_type", "row_id", "position", "number"),
        Index(None, "position", "number"),
    )

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    position: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[UUID] = mapped_column()
    target_type: Mapped[str] = mapped_column(Text)
    row_id: Mapped[UUID | None] = mapped_column()
    version: Mapped[int | None] = mapped_column(BigInteger)
    updated_at: Mapped[datetime | None] = mapped_column(Moment)


class PastBase(Model):
    """A row of a tenant as it was at ``position``, where :mod:`app.history` begins to read.

    A base of a tenant has all its rows. ``state`` is what audit rows had recorded of the row.
    """

    __tablename__ = "past_bases"

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    position: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    target_type: Mapped[str] = mapped_column(Text, primary_key=True)
    row_id: Mapped[UUID] = mapped_column(primary_key=True)
    version: Mapped[int | None] = mapped_column(BigInteger)
    updated_at: Mapped[datetime | None] = mapped_column(Moment)
    actor: Mapped[str] = mapped_column(Text)
    state: Mapped[dict[str, Json]] = mapped_column(JSON, info=UNBOUNDED)

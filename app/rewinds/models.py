"""Rewinds: a tenant's rows are made again what they were at an earlier moment."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import JSON, BigInteger, Index, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db.models import UNBOUNDED, Moment, TenantRow, updated_index
from app.core.json_text import Json


class RewindState(StrEnum):
    """The state of a rewind. One that left rows out is ``completed`` too."""

    PREVIEW = "preview"
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


class Rewind(TenantRow):
    """One rewind of a tenant, done in slices.

    ``to_position`` and ``to_time`` are the moment whose rows are made again. ``position`` is that of
    the rewind itself: rows that were changed only after it stay as they are. It is None until the
    sequencer has given it. ``step`` and ``last_id`` are what the last slice has reached. ``left_out``
    has the first rows that could not be changed, ``left_out_total`` is their number.
    """

    __tablename__ = "rewinds"

    created_by_user_id: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(Text, default=RewindState.PENDING.value)
    to_position: Mapped[int] = mapped_column(BigInteger)
    to_time: Mapped[datetime] = mapped_column(Moment)
    position: Mapped[int | None] = mapped_column(BigInteger)
    kinds: Mapped[list[str]] = mapped_column(JSON)
    only: Mapped[list[str] | None] = mapped_column(JSON(none_as_null=True))
    step: Mapped[int] = mapped_column(BigInteger, default=0)
    last_id: Mapped[str | None] = mapped_column(Text)
    done: Mapped[int] = mapped_column(BigInteger, default=0)
    counts: Mapped[dict[str, dict[str, int]]] = mapped_column(JSON, default=dict)
    left_out: Mapped[list[dict[str, Json]]] = mapped_column(JSON, default=list, info=UNBOUNDED)
    left_out_total: Mapped[int] = mapped_column(BigInteger, default=0)
    error: Mapped[str] = mapped_column(Text, default="")
    finished_at: Mapped[datetime | None] = mapped_column(Moment)

    constraints = (
        Index(None, "tenant_id", "created_at", "id"),
        Index(None, "created_at", "id"),
        updated_index(),
        Index(
            "uq_rewinds_unfinished",
            "tenant_id",
            unique=True,
            postgresql_where=text("finished_at IS NULL"),
        ),
        Index("ix_rewinds_unfinished", "updated_at", postgresql_where=text("finished_at IS NULL")),
    )

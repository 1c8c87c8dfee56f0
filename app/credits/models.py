"""Balances of credits, their lots, the ledger, and what holds have taken."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, ForeignKey, ForeignKeyConstraint, Identity, Index, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db.models import Moment
from app.core.json_text import Json
from app.extensions import Model

LOT = ["tenant_id", "lot_id"], ["credit_lots.tenant_id", "credit_lots.id"]


class CreditBalance(Model):
    """The credits of a tenant for one feature; all work with them locks this row.

    ``balance`` is what is left in all lots, also in those that start later. ``due_at`` is when the
    next lot or hold expires, or the plan grants again. ``period_start`` is the plan's period.
    ``granted_balance`` was the balance after the last grant. ``told`` has the thresholds that were
    recorded, and when.
    """

    __tablename__ = "credit_balances"
    __table_args__ = (Index(None, "due_at", postgresql_where=text("due_at IS NOT NULL")),)

    tenant_id: Mapped[UUID] = mapped_column(ForeignKey("tenants.id"), primary_key=True)
    feature: Mapped[str] = mapped_column(Text, primary_key=True)
    balance: Mapped[int] = mapped_column(BigInteger)
    due_at: Mapped[datetime | None] = mapped_column(Moment)
    period_start: Mapped[datetime | None] = mapped_column(Moment)
    last_grant: Mapped[int | None] = mapped_column(BigInteger)
    granted_at: Mapped[datetime | None] = mapped_column(Moment)
    granted_balance: Mapped[int | None] = mapped_column(BigInteger)
    told: Mapped[dict[str, Json]] = mapped_column(JSONB)


class CreditLot(Model):
    """Credits that were granted together.

    What is granted is remaining, spent, held, revoked or expired. ``period_start`` is the period of
    a lot that the plan grants. ``untold`` has expired, and no event has recorded it yet. ``version``
    grows by one with each entry.
    """

    __tablename__ = "credit_lots"
    __table_args__ = (
        Index(None, "id"),
        Index(None, "tenant_id", "created_at", "id"),
        Index(
            "ix_credit_lots_ends",
            "tenant_id",
            "feature",
            text("coalesce(expires_at, 'infinity'::timestamptz)"),
        ),
        Index("ix_credit_lots_untold", "tenant_id", postgresql_where=text("untold > 0")),
    )

    tenant_id: Mapped[UUID] = mapped_column(ForeignKey("tenants.id"), primary_key=True)
    id: Mapped[UUID] = mapped_column(primary_key=True)
    created_at: Mapped[datetime] = mapped_column(Moment)
    feature: Mapped[str] = mapped_column(Text)
    granted: Mapped[int] = mapped_column(BigInteger)
    remaining: Mapped[int] = mapped_column(BigInteger)
    spent: Mapped[int] = mapped_column(BigInteger)
    untold: Mapped[int] = mapped_column(BigInteger)
    version: Mapped[int] = mapped_column(BigInteger)
    priority: Mapped[int] = mapped_column(BigInteger)
    starts_at: Mapped[datetime] = mapped_column(Moment)
    expires_at: Mapped[datetime | None] = mapped_column(Moment)
    period_start: Mapped[datetime | None] = mapped_column(Moment)
    source: Mapped[str] = mapped_column(Text)
    reference: Mapped[str | None] = mapped_column(Text)


class CreditEntry(Model):
    """A change of a lot. The application's database role may only read and insert.

    ``remaining`` is what the lot has after it, and ``balance`` what all lots have.
    """

    __tablename__ = "credit_entries"
    __table_args__ = (
        ForeignKeyConstraint(*LOT),
        Index(None, "tenant_id", "feature", "number"),
        Index(None, "tenant_id", "lot_id", "at", "number"),
    )

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    at: Mapped[datetime] = mapped_column(Moment)
    feature: Mapped[str] = mapped_column(Text)
    lot_id: Mapped[UUID]
    kind: Mapped[str] = mapped_column(Text)
    amount: Mapped[int] = mapped_column(BigInteger)
    remaining: Mapped[int] = mapped_column(BigInteger)
    balance: Mapped[int] = mapped_column(BigInteger)
    hold_id: Mapped[UUID | None]
    reason: Mapped[str | None] = mapped_column(Text)


class CreditHold(Model):
    """The credits that a hold has taken from a lot, until the hold ends."""

    __tablename__ = "credit_holds"
    __table_args__ = (ForeignKeyConstraint(*LOT), Index(None, "tenant_id", "feature", "expires_at"))

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    hold_id: Mapped[UUID] = mapped_column(primary_key=True)
    lot_id: Mapped[UUID] = mapped_column(primary_key=True)
    feature: Mapped[str] = mapped_column(Text)
    amount: Mapped[int] = mapped_column(BigInteger)
    expires_at: Mapped[datetime] = mapped_column(Moment)

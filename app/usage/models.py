"""What tenants have used of their limits, and the idempotency keys of what was counted."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy import BigInteger, ForeignKey, Index, SmallInteger, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db.models import Moment
from app.extensions import Model

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)  # the start of the period `none`


class UsageCounter(Model):
    """How much a tenant has used of a limit in one period.

    The period includes ``period_start`` and excludes ``period_end``. A limit with the period
    ``none`` starts in 1970 and has no end. ``announced`` is the highest threshold, in percent,
    whose crossing was recorded, and ``announced_limit`` the limit at that count: where the period is
    ``none``, the thresholds of another limit are recorded again.
    """

    __tablename__ = "usage_counters"
    __table_args__ = (
        Index(None, "period_end", postgresql_where=text("period_end IS NOT NULL")),
        Index("ix_usage_counters_reached", "period_end", postgresql_where=text("announced >= 100")),
    )

    tenant_id: Mapped[UUID] = mapped_column(ForeignKey("tenants.id"), primary_key=True)
    feature: Mapped[str] = mapped_column(Text, primary_key=True)
    period_start: Mapped[datetime] = mapped_column(Moment, primary_key=True)
    period_end: Mapped[datetime | None] = mapped_column(Moment)
    used: Mapped[int] = mapped_column(BigInteger)
    announced: Mapped[int] = mapped_column(SmallInteger)
    announced_limit: Mapped[int | None] = mapped_column(BigInteger)


class UsageKey(Model):
    """An ``idempotency_key`` that was counted, for 24 hours.

    ``digest`` is of the feature and the key. There is no foreign key to the tenant, because its
    check would write to the tenant's row each time.
    """

    __tablename__ = "usage_keys"

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    digest: Mapped[UUID] = mapped_column(primary_key=True)
    amount: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(Moment, index=True)

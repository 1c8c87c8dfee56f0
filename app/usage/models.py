"""The use and the holds of tenants' limits, and the idempotency keys of counted requests."""

from __future__ import annotations

from datetime import UTC, date, datetime
from enum import StrEnum
from uuid import UUID

from sqlalchemy import BigInteger, Date, ForeignKey, Index, SmallInteger, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db.models import Moment
from app.extensions import Model

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)  # the start of the period `none`


class UsageCounter(Model):
    """How much a tenant has used of a limit in one period.

    The period includes ``period_start`` and excludes ``period_end``. A limit with the period
    ``none`` starts in 1970 and has no end. ``announced`` is the highest threshold, in percent,
    whose crossing was recorded, and ``announced_limit`` the limit at that count: where the period is
    ``none``, the thresholds of another limit are recorded again. ``held`` is what its open holds
    hold, also those that have expired since the last sweep. ``forecast_at`` is when the event
    ``limit.forecast`` was recorded.
    """

    __tablename__ = "usage_counters"
    __table_args__ = (
        Index("ix_usage_counters_ends", "period_end", "tenant_id", "feature", "period_start"),
        Index("ix_usage_counters_reached", "period_end", postgresql_where=text("announced >= 100")),
    )

    tenant_id: Mapped[UUID] = mapped_column(ForeignKey("tenants.id"), primary_key=True)
    feature: Mapped[str] = mapped_column(Text, primary_key=True)
    period_start: Mapped[datetime] = mapped_column(Moment, primary_key=True)
    period_end: Mapped[datetime | None] = mapped_column(Moment)
    used: Mapped[int] = mapped_column(BigInteger)
    announced: Mapped[int] = mapped_column(SmallInteger)
    announced_limit: Mapped[int | None] = mapped_column(BigInteger)
    held: Mapped[int] = mapped_column(BigInteger, default=0, server_default=text("0"))
    forecast_at: Mapped[datetime | None] = mapped_column(Moment)


class HoldKind(StrEnum):
    """What holds an amount of a limit."""

    HOLD = "hold"  # it is settled once
    LEASE = "lease"  # its holder reports what is used again and again


class HoldState(StrEnum):
    """The state of a hold or lease."""

    OPEN = "open"
    SETTLED = "settled"
    RELEASED = "released"
    EXPIRED = "expired"  # it can be settled late, for 24 hours


class UsageHold(Model):
    """An amount of a limit that is held until it is settled or expires.

    It belongs to the counter of the period in which it was made. ``amount`` is what was held; of a
    lease, what is left of it. ``counted`` was counted in the end, and ``over_by`` did not fit.
    ``remaining`` was free of the limit after the last change; None: unlimited. ``digest`` is of the
    feature and the idempotency key. The hold has taken ``rate`` credits for each unit. There is no
    foreign key, because each check would write to the row that it refers to.
    """

    __tablename__ = "usage_holds"
    __table_args__ = (
        Index(None, "id"),
        Index(None, "tenant_id", "created_at", "id"),
        Index(
            "ix_usage_holds_open",
            "tenant_id",
            "feature",
            "period_start",
            "expires_at",
            postgresql_where=text("state = 'open'"),
        ),
        Index(
            "ix_usage_holds_unsettled",
            "tenant_id",
            "state",
            "created_at",
            "id",
            postgresql_where=text("state IN ('expired', 'released')"),
        ),
        Index(None, "ended_at", postgresql_where=text("ended_at IS NOT NULL")),
        Index(
            None,
            "tenant_id",
            "digest",
            unique=True,
            postgresql_where=text("digest IS NOT NULL"),
        ),
    )

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    id: Mapped[UUID] = mapped_column(primary_key=True)
    created_at: Mapped[datetime] = mapped_column(Moment)
    expires_at: Mapped[datetime] = mapped_column(Moment)
    ended_at: Mapped[datetime | None] = mapped_column(Moment)
    period_start: Mapped[datetime] = mapped_column(Moment)
    digest: Mapped[UUID | None]
    amount: Mapped[int] = mapped_column(BigInteger)
    counted: Mapped[int] = mapped_column(BigInteger)
    over_by: Mapped[int] = mapped_column(BigInteger)
    remaining: Mapped[int | None] = mapped_column(BigInteger)
    ttl_seconds: Mapped[int] = mapped_column(BigInteger)
    is_late: Mapped[bool]
    feature: Mapped[str] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(Text)
    reference: Mapped[str | None] = mapped_column(Text)
    credits: Mapped[str | None] = mapped_column(Text)
    rate: Mapped[int | None] = mapped_column(BigInteger)


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


class UsageDay(Model):
    """The last count of a period on a day (UTC), and how much of it was added on the day."""

    __tablename__ = "usage_days"

    tenant_id: Mapped[UUID] = mapped_column(ForeignKey("tenants.id"), primary_key=True)
    feature: Mapped[str] = mapped_column(Text, primary_key=True)
    period_start: Mapped[datetime] = mapped_column(Moment, primary_key=True)
    day: Mapped[date] = mapped_column(Date, primary_key=True, index=True)
    used: Mapped[int] = mapped_column(BigInteger)
    added: Mapped[int] = mapped_column(BigInteger)

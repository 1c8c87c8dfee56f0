"""Plan presets, the prices that give them, and the plans that the platform assigns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import JSON, BigInteger, ForeignKey, Index, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.core.clock import utcnow
from app.core.db.models import UNBOUNDED, Moment, Row
from app.core.json_text import Json
from app.extensions import Model

Flag = Mapping[str, Json]  # one of the `flags` of a preset
Flags = Sequence[Flag]


class PlanPreset(Row):
    """The flags of the tenants whose plan has the preset's name.

    ``flags`` is a list of ``flag_key, flag_type, default_value, description, is_locked``, for a
    limit also ``metering``, and ``rules`` if there are any. The list is stored as it was sent, with
    its order and the notation of its numbers. The database function ``tenant_limits`` reads the
    limits from it. ``has_new_name`` until a job has given the plan to the tenants whose
    subscriptions named it before.
    """

    __tablename__ = "plan_presets"
    __table_args__ = (Index(None, "created_at", "id"),)

    name: Mapped[str] = mapped_column(Text, unique=True)
    display_name: Mapped[str] = mapped_column(Text, default="", server_default="", info=UNBOUNDED)
    has_new_name: Mapped[bool] = mapped_column(default=False, server_default="false")
    flags: Mapped[list[dict[str, Json]]] = mapped_column(JSON, default=list, info=UNBOUNDED)


class PlanPrice(Row):
    """What a price of a billing provider gives. Either ``price_id`` or ``lookup_key`` is None.

    ``plan_name`` is the plan of a subscription with this price; of several prices, the one with the
    lowest ``sort_order`` decides. ``limit_key`` is the limit that gets the item's quantity.
    ``is_pending`` until a job has applied a change to subscriptions. ``is_deleted``: the price
    gives nothing any more, and the job then deletes the row.
    The rule is ``migrations/functions/plan_of_items.sql``.
    """

    __tablename__ = "plan_prices"
    __table_args__ = (
        UniqueConstraint("provider", "price_id"),
        UniqueConstraint("provider", "lookup_key"),
        Index(None, "created_at", "id"),
    )

    provider: Mapped[str] = mapped_column(Text)
    price_id: Mapped[str | None] = mapped_column(Text)
    lookup_key: Mapped[str | None] = mapped_column(Text)
    plan_name: Mapped[str] = mapped_column(Text)
    limit_key: Mapped[str | None] = mapped_column(Text)
    sort_order: Mapped[int] = mapped_column(BigInteger, default=0)
    is_pending: Mapped[bool] = mapped_column(default=True)
    is_deleted: Mapped[bool] = mapped_column(default=False)


PLANS_IN_FORCE = sa.table(
    "plans_in_force",
    sa.column("tenant_id", sa.Uuid),
    *map(sa.column, ("is_active", "plan_name", "ended_plan_name")),
)
"""The view ``migrations/views/plans_in_force.sql``: the plan that each tenant has now."""


class PlanAssignment(Model):
    """The plan that the platform has given a tenant; it takes precedence over every subscription.

    From ``until`` on it has no effect, and a job deletes the row (None: until it is deleted).
    ``next_plan_name`` is the plan that the tenant has after it. ``ending_announced_at`` is when the
    coming end was announced.
    """

    __tablename__ = "plan_assignments"

    tenant_id: Mapped[UUID] = mapped_column(ForeignKey("tenants.id"), primary_key=True)
    plan_name: Mapped[str] = mapped_column(Text)
    next_plan_name: Mapped[str] = mapped_column(Text, index=True)
    until: Mapped[datetime | None] = mapped_column(Moment, index=True)
    reason: Mapped[str] = mapped_column(Text)
    created_by: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)
    ending_announced_at: Mapped[datetime | None] = mapped_column(Moment)

"""Plan presets: the flags of a plan. Feature overrides: one tenant's different values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, ForeignKey, Index, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db.models import UNBOUNDED, Moment, Row, TenantRow, updated_index
from app.core.json_text import Json

Flag = Mapping[str, Json]  # one of the `flags` of a preset
Flags = Sequence[Flag]


class PlanPreset(Row):
    """The flags of the tenants whose plan has the preset's name.

    ``flags`` is a list of ``flag_key, flag_type, default_value, description, is_locked``, and of a
    limit ``metering``. The list is stored as it was sent, with its order and the notation of its
    numbers. The database function ``tenant_limits`` reads the limits from it. ``has_new_name`` until
    a job has given the plan to the tenants whose subscriptions named it before.
    """

    __tablename__ = "plan_presets"
    __table_args__ = (Index(None, "created_at", "id"),)

    name: Mapped[str] = mapped_column(Text, unique=True)
    display_name: Mapped[str] = mapped_column(Text, default="", server_default="", info=UNBOUNDED)
    has_new_name: Mapped[bool] = mapped_column(default=False, server_default="false")
    flags: Mapped[list[dict[str, Json]]] = mapped_column(JSON, default=list, info=UNBOUNDED)


class FeatureOverride(TenantRow):
    """One tenant's own value of one flag of one preset.

    It has an effect while the tenant has that preset, and until ``expires_at`` (None: no expiry).
    ``announced_expiry`` is the ``expires_at`` whose coming is recorded as ``override.expired``.
    With ``carry_over`` it moves to the preset of the tenant's next plan, if that preset has the flag
    with the same type.
    """

    __tablename__ = "feature_overrides"
    resource_name = "override"  # in error codes

    plan_preset_id: Mapped[UUID] = mapped_column(ForeignKey("plan_presets.id"))
    flag_key: Mapped[str] = mapped_column(Text)
    flag_value: Mapped[Json] = mapped_column(JSON, nullable=False)
    expires_at: Mapped[datetime | None] = mapped_column(Moment)
    announced_expiry: Mapped[datetime | None] = mapped_column(Moment)
    carry_over: Mapped[bool] = mapped_column(default=False, server_default="false")

    @classmethod
    def constraints(cls) -> tuple[Any, ...]:
        return (
            UniqueConstraint("tenant_id", "plan_preset_id", "flag_key"),
            Index(None, "tenant_id", "created_at", "id"),
            Index(None, "created_at", "id"),
            updated_index(),
            Index(None, "plan_preset_id", "created_at", "id"),
            Index(None, "flag_key", "created_at", "id"),
            Index(
                None,
                "expires_at",
                postgresql_where=text("expires_at IS DISTINCT FROM announced_expiry"),
            ),
        )

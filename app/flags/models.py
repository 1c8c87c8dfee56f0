"""Feature overrides: one tenant's values that differ from the plan's."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import JSON, ForeignKey, Index, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db.models import Moment, TenantRow, updated_index
from app.core.json_text import Json


class FeatureOverride(TenantRow):
    """One tenant's own value of one flag of one preset.

    It has an effect while the tenant has that preset, and until ``expires_at`` (None: no expiry).
    ``announced_expiry`` is the ``expires_at`` whose coming is recorded as ``override.expired``.
    With ``carry_over`` it moves to the preset of the tenant's next plan, if that preset has the
    flag with the same type. ``reason`` is empty if nobody gave a reason.
    """

    __tablename__ = "feature_overrides"
    resource_name = "override"  # in error codes

    plan_preset_id: Mapped[UUID] = mapped_column(ForeignKey("plan_presets.id"))
    flag_key: Mapped[str] = mapped_column(Text)
    flag_value: Mapped[Json] = mapped_column(JSON, nullable=False)
    expires_at: Mapped[datetime | None] = mapped_column(Moment)
    announced_expiry: Mapped[datetime | None] = mapped_column(Moment)
    carry_over: Mapped[bool] = mapped_column(default=False, server_default="false")
    reason: Mapped[str] = mapped_column(Text, default="", server_default="")

    constraints = (
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

"""Tenants: the customers of the company that runs the service."""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, Index, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db.models import Row, updated_index


class Tenant(Row):
    """One customer organization. A tenant that is not active is suspended.

    ``plan_name`` is that of the current subscription, or the default plan. No request sets it.
    ``meta_data`` is any JSON object, stored as it was sent.
    """

    __tablename__ = "tenants"
    # The composite foreign keys of tables with an `idp_org_id` refer to (id, idp_org_id).
    __table_args__ = (
        UniqueConstraint("id", "idp_org_id"),
        Index(None, "created_at", "id"),
        updated_index(),
        Index(None, "plan_name", "created_at", "id"),
    )

    idp_org_id: Mapped[str] = mapped_column(Text, unique=True)
    name: Mapped[str] = mapped_column(Text)
    slug: Mapped[str] = mapped_column(Text, unique=True)
    plan_name: Mapped[str] = mapped_column(Text)
    primary_contact_name: Mapped[str] = mapped_column(Text, default="")
    primary_contact_email: Mapped[str] = mapped_column(Text, default="")
    primary_contact_phone: Mapped[str] = mapped_column(Text, default="")
    mailing_address_line_1: Mapped[str] = mapped_column(Text, default="")
    mailing_address_line_2: Mapped[str] = mapped_column(Text, default="")
    mailing_city: Mapped[str] = mapped_column(Text, default="")
    mailing_state: Mapped[str] = mapped_column(Text, default="")
    mailing_zipcode: Mapped[str] = mapped_column(Text, default="")
    mailing_country: Mapped[str] = mapped_column(Text, default="")
    is_active: Mapped[bool] = mapped_column(default=True)
    meta_data: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict, server_default="{}")

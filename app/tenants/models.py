"""Tenants: the customers of the company that runs the service."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.core.clock import utcnow
from app.core.db.models import UNBOUNDED, Moment, Row, updated_index
from app.extensions import Model


class Tenant(Row):
    """One customer organization. A tenant that is not active is suspended.

    ``plan_name`` is that of the current subscription, or the default plan. No request sets it.
    ``meta_data`` is any JSON object, stored as it was sent. ``deletes_at``: from then on the tenant
    is deleted; None while no deletion is requested. ``suspension_reason`` is empty if nobody gave a
    reason, and while the tenant is active.
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
    name: Mapped[str] = mapped_column(Text, info=UNBOUNDED)
    slug: Mapped[str] = mapped_column(Text, unique=True)
    plan_name: Mapped[str] = mapped_column(Text)
    primary_contact_name: Mapped[str] = mapped_column(Text, default="", info=UNBOUNDED)
    primary_contact_email: Mapped[str] = mapped_column(Text, default="", info=UNBOUNDED)
    primary_contact_phone: Mapped[str] = mapped_column(Text, default="", info=UNBOUNDED)
    mailing_address_line_1: Mapped[str] = mapped_column(Text, default="", info=UNBOUNDED)
    mailing_address_line_2: Mapped[str] = mapped_column(Text, default="", info=UNBOUNDED)
    mailing_city: Mapped[str] = mapped_column(Text, default="", info=UNBOUNDED)
    mailing_state: Mapped[str] = mapped_column(Text, default="", info=UNBOUNDED)
    mailing_zipcode: Mapped[str] = mapped_column(Text, default="", info=UNBOUNDED)
    mailing_country: Mapped[str] = mapped_column(Text, default="", info=UNBOUNDED)
    is_active: Mapped[bool] = mapped_column(default=True)
    meta_data: Mapped[dict[str, object]] = mapped_column(JSON, default=dict, server_default="{}")
    deletes_at: Mapped[datetime | None] = mapped_column(Moment)
    suspension_reason: Mapped[str] = mapped_column(Text, default="", server_default="")


class TenantNotes(Model):
    """The platform's own notes on a tenant. ``version`` grows by one with each change."""

    __tablename__ = "tenant_notes"

    tenant_id: Mapped[UUID] = mapped_column(
        ForeignKey("tenants.id", ondelete="CASCADE"), primary_key=True
    )
    version: Mapped[int] = mapped_column(BigInteger)
    updated_at: Mapped[datetime] = mapped_column(Moment)
    updated_by: Mapped[str] = mapped_column(Text)
    text: Mapped[str] = mapped_column(Text)


class DeletionStage(StrEnum):
    """How far the deletion of a tenant is."""

    WAITING = "waiting"
    PAYLOADS = "payloads"
    PEOPLE = "people"
    ANSWERS = "answers"
    ROWS = "rows"


class TenantDeletion(Model):
    """A requested deletion of a tenant, until the tenant is gone.

    ``worked_at`` is when a worker last worked on it. ``last_moment`` and ``last_id`` are the last
    row that the ``stage`` has visited. ``deleted_rows`` counts the rows deleted so far by table.
    """

    __tablename__ = "tenant_deletions"

    tenant_id: Mapped[UUID] = mapped_column(
        ForeignKey("tenants.id", ondelete="CASCADE"), primary_key=True
    )
    requested_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)
    requested_by: Mapped[str] = mapped_column(Text)
    worked_at: Mapped[datetime] = mapped_column(Moment, default=utcnow, index=True)
    stage: Mapped[str] = mapped_column(Text, default=DeletionStage.WAITING.value)
    last_moment: Mapped[datetime | None] = mapped_column(Moment)
    last_id: Mapped[UUID | None]
    deleted_rows: Mapped[dict[str, object]] = mapped_column(JSON, default=dict)


class DeletedOrganization(Model):
    """The ``idp_org_id`` of a deleted tenant: no tenant gets it until an operator frees it."""

    __tablename__ = "deleted_organizations"

    idp_org_id: Mapped[str] = mapped_column(Text, primary_key=True)
    deleted_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)

"""Memberships: a user's role in the tenant."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import ForeignKeyConstraint, Index, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db.models import Attributed, OrganizationRow, updated_index


class Membership(Attributed, OrganizationRow):
    """One user's role in the tenant. A user has at most one membership.

    ``idp_membership_id`` is ``""`` if the identity provider has no membership.
    """

    __tablename__ = "memberships"

    user_id: Mapped[UUID] = mapped_column()
    idp_membership_id: Mapped[str] = mapped_column(Text, default="")
    role: Mapped[str] = mapped_column(Text)
    is_active: Mapped[bool] = mapped_column(default=True)

    constraints = (
        ForeignKeyConstraint(["tenant_id", "user_id"], ["users.tenant_id", "users.id"]),
        UniqueConstraint("tenant_id", "user_id"),
        Index(
            "uq_memberships_tenant_id_idp_membership_id",
            "tenant_id",
            "idp_membership_id",
            unique=True,
            postgresql_where=text("idp_membership_id <> ''"),
        ),
        Index(None, "tenant_id", "created_at", "id"),
        Index(None, "created_at", "id"),
        Index("ix_memberships_owners", "tenant_id", postgresql_where=text("role = 'owner'")),
        updated_index(),
    )

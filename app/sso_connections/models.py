"""SSO connections of tenants."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import JSON, Index, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db.models import Moment, TenantRow, updated_index


class SsoState(StrEnum):
    """Whether people can sign in by a connection."""

    ACTIVE = "active"
    INACTIVE = "inactive"
    DRAFT = "draft"


class SsoConnection(TenantRow):
    """A connection of the identity provider ``source`` to the tenant's own sign-in.

    ``idp_connection_id`` is the identity provider's id. ``announced_end`` is the certificate's end
    that was last announced.
    """

    __tablename__ = "sso_connections"

    source: Mapped[str] = mapped_column(Text)
    idp_connection_id: Mapped[str] = mapped_column(Text)
    name: Mapped[str] = mapped_column(Text)
    provider: Mapped[str] = mapped_column(Text)
    type: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(Text)
    domains: Mapped[list[str]] = mapped_column(JSON)
    certificate_ends_at: Mapped[datetime | None] = mapped_column(Moment)
    announced_end: Mapped[datetime | None] = mapped_column(Moment)

    constraints = (
        UniqueConstraint("tenant_id", "source", "idp_connection_id"),
        Index(
            None, "certificate_ends_at", postgresql_where=text("certificate_ends_at IS NOT NULL")
        ),
        Index(None, "tenant_id", "created_at", "id"),
        Index(None, "created_at", "id"),
        updated_index(),
    )

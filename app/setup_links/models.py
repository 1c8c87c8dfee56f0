"""Setup links and what they may be for."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import ARRAY, Index, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db.models import Attributed, Moment, TenantRow, updated_index


class SetupScope(StrEnum):
    """A part of a tenant's setup."""

    SCIM = "scim"
    DOMAINS = "domains"
    SSO = "sso"
    WEBHOOK_ENDPOINTS = "webhook_endpoints"
    LOG_STREAMS = "log_streams"


class SetupLink(Attributed, TenantRow):
    """A link that opens the setup pages of ``scopes`` in one browser.

    Digests are stored: of the link's token, and of the secret of the browser that opened it.
    """

    __tablename__ = "setup_links"

    scopes: Mapped[list[str]] = mapped_column(ARRAY(Text))
    contact: Mapped[str] = mapped_column(Text, default="")
    digest: Mapped[str] = mapped_column(Text)
    session_digest: Mapped[str | None] = mapped_column(Text)
    expires_at: Mapped[datetime] = mapped_column(Moment)
    opened_at: Mapped[datetime | None] = mapped_column(Moment)
    revoked_at: Mapped[datetime | None] = mapped_column(Moment)

    constraints = (
        Index(None, "digest"),
        Index(None, "session_digest"),
        Index(None, "expires_at"),
        Index(None, "tenant_id", "created_at", "id"),
        Index(None, "created_at", "id"),
        updated_index(),
    )

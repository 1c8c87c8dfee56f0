"""API keys, platform superadmins, sessions. No scope limits these tables: they determine it."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import JSON, ForeignKey, Index, Text, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from app.core.clock import utcnow
from app.core.db.models import Attributed, Moment, Row, updated_index
from app.core.json_text import Json
from app.extensions import Model


class ApiKey(Attributed, Row):
    """A credential of a program. Only the SHA-256 digest of the secret is stored."""

    __tablename__ = "api_keys"
    __table_args__ = (
        Index(None, "created_at", "id"),
        updated_index(),
        Index(None, "tenant_id", "created_at", "id"),
        Index(None, "expires_at", postgresql_where=text("revoked_at IS NULL")),
    )

    tenant_id: Mapped[UUID | None] = mapped_column(ForeignKey("tenants.id"))
    name: Mapped[str] = mapped_column(Text)
    digest: Mapped[str] = mapped_column(Text, unique=True)
    prefix: Mapped[str] = mapped_column(Text)  # the first characters, which identify the key
    permissions: Mapped[list[str]] = mapped_column(ARRAY(Text))
    expires_at: Mapped[datetime | None] = mapped_column(Moment)
    revoked_at: Mapped[datetime | None] = mapped_column(Moment)
    last_used_at: Mapped[datetime | None] = mapped_column(Moment)


class PlatformAdmin(Model):
    """A person (a subject of the identity provider) who is a superadmin. Commands manage them."""

    __tablename__ = "platform_admins"

    subject: Mapped[str] = mapped_column(Text, primary_key=True)
    created_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)


class ConsoleSession(Model):
    """A browser that is signed in to the console. Only the digest of its cookie is stored.

    ``email`` is the person's verified address; None if the sign-in does not contain it.
    """

    __tablename__ = "console_sessions"

    digest: Mapped[str] = mapped_column(Text, primary_key=True)
    subject: Mapped[str] = mapped_column(Text)
    org_id: Mapped[str | None] = mapped_column(Text)
    email: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)
    last_used_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)


class ConsoleTicket(Model):
    """A secret that works once: that of a sign-in link, or the state of a begun sign-in."""

    __tablename__ = "console_tickets"

    digest: Mapped[str] = mapped_column(Text, primary_key=True)
    subject: Mapped[str | None] = mapped_column(Text)
    org_id: Mapped[str | None] = mapped_column(Text)
    data: Mapped[dict[str, Json]] = mapped_column(JSON)
    expires_at: Mapped[datetime] = mapped_column(Moment)

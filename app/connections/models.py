"""Connections of directories, their access tokens and their last requests."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import (
    JSON,
    BigInteger,
    ForeignKeyConstraint,
    Index,
    SmallInteger,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from app.core.clock import utcnow
from app.core.db.models import UNBOUNDED, Attributed, Moment, TenantRow, updated_index
from app.extensions import Model


class DirectoryProvider(StrEnum):
    """The directory at the other end of a connection."""

    OKTA = "okta"
    ENTRA = "entra"
    ONELOGIN = "onelogin"
    GOOGLE = "google"
    JUMPCLOUD = "jumpcloud"
    GENERIC = "generic"


class Deactivate(StrEnum):
    """What is deactivated when a person leaves the directory: the membership, or also the user."""

    MEMBERSHIP = "membership"
    USER = "user"


class ConnectionStatus(StrEnum):
    """Whether a connection's requests are served."""

    ACTIVE = "active"
    TESTING = "testing"  # only those that read, until its setup is tested
    DISABLED = "disabled"


class Connection(Protocol):
    """A connection as the function ``authenticate_scim`` and :class:`ScimConnection` have it."""

    id: UUID
    tenant_id: UUID
    acts_as: str
    status: str
    default_role: str
    group_roles: dict[str, str]
    deactivate: str


class ScimConnection(Attributed, TenantRow):
    """A directory that provisions people of the tenant.

    Digests are stored, never the bearer tokens. ``old_digest`` is that of the token before the last
    rotation, which is valid until ``old_expires_at``. ``acts_as`` is the role with which the
    connection makes its changes: that of whoever created it.
    """

    __tablename__ = "scim_connections"

    name: Mapped[str] = mapped_column(Text)
    provider: Mapped[str] = mapped_column(Text)
    status: Mapped[str] = mapped_column(Text, default=ConnectionStatus.ACTIVE.value)
    default_role: Mapped[str] = mapped_column(Text)
    group_roles: Mapped[dict[str, str]] = mapped_column(JSON, default=dict, info=UNBOUNDED)
    deactivate: Mapped[str] = mapped_column(Text, default=Deactivate.MEMBERSHIP.value)
    acts_as: Mapped[str] = mapped_column(Text)
    digest: Mapped[str] = mapped_column(Text)
    prefix: Mapped[str] = mapped_column(Text)  # the first characters, which identify the token
    old_digest: Mapped[str | None] = mapped_column(Text)
    old_expires_at: Mapped[datetime | None] = mapped_column(Moment)
    public_keys: Mapped[list[dict[str, Any]]] = mapped_column(JSON, default=list)
    last_request_at: Mapped[datetime | None] = mapped_column(Moment)
    request_count: Mapped[int] = mapped_column(BigInteger, default=0)
    error_count: Mapped[int] = mapped_column(BigInteger, default=0)
    last_error: Mapped[str] = mapped_column(Text, default="")
    last_error_at: Mapped[datetime | None] = mapped_column(Moment)

    constraints = (
        Index(None, "digest"),
        Index(None, "old_digest"),
        Index(None, "tenant_id", "created_at", "id"),
        Index(None, "created_at", "id"),
        updated_index(),
    )


def references(column: str, model: type[TenantRow]) -> ForeignKeyConstraint:
    """Rows with the id of a row of ``model``, with which they are deleted."""
    return ForeignKeyConstraint(
        ["tenant_id", column], [model.tenant_id, model.id], ondelete="CASCADE"
    )


class ScimAccessToken(Model):
    """The digest of an access token that was issued for a connection's client credentials.

    ``assertion_digest`` is that of the assertion, which counts once.
    """

    __tablename__ = "scim_access_tokens"
    __table_args__ = (
        references("connection_id", ScimConnection),
        UniqueConstraint("tenant_id", "connection_id", "assertion_digest"),
        Index(None, "digest"),
    )

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    connection_id: Mapped[UUID] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(Text, primary_key=True)
    expires_at: Mapped[datetime] = mapped_column(Moment)
    assertion_digest: Mapped[str | None] = mapped_column(Text)


class ScimRequest(Model):
    """One of the last requests of a connection, without the values that it sent."""

    __tablename__ = "scim_requests"
    __table_args__ = (references("connection_id", ScimConnection),)

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    connection_id: Mapped[UUID] = mapped_column(primary_key=True)
    slot: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    sent_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)
    method: Mapped[str] = mapped_column(Text)
    path: Mapped[str] = mapped_column(Text)
    status: Mapped[int] = mapped_column(SmallInteger)
    detail: Mapped[str] = mapped_column(Text)

"""Connections of directories, and the users and groups that they provision."""

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
    text,
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
    """What the end of a person in the directory deactivates: the membership, or the user as well."""

    MEMBERSHIP = "membership"
    USER = "user"


class ConnectionStatus(StrEnum):
    """Whether a connection's requests are served."""

    ACTIVE = "active"
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

    @classmethod
    def constraints(cls) -> tuple[Any, ...]:
        return (
            Index(None, "digest"),
            Index(None, "old_digest"),
            Index(None, "tenant_id", "created_at", "id"),
            Index(None, "created_at", "id"),
            updated_index(),
        )


def _references(column: str, model: type[TenantRow]) -> ForeignKeyConstraint:
    """Rows with the id of a row of ``model``, with which they are deleted."""
    return ForeignKeyConstraint(
        ["tenant_id", column], [model.tenant_id, model.id], ondelete="CASCADE"
    )


def _of_connection() -> tuple[ForeignKeyConstraint | Index, ...]:
    """The constraint and the indexes of a connection's resources."""
    return (
        _references("connection_id", ScimConnection),
        Index(None, "tenant_id", "connection_id", "external_id"),
        Index(None, "tenant_id", "connection_id", "id"),
    )


class ScimAccessToken(Model):
    """The digest of an access token that a connection's client credentials were given for.

    ``assertion_digest`` is that of the assertion, which counts once.
    """

    __tablename__ = "scim_access_tokens"
    __table_args__ = (
        _references("connection_id", ScimConnection),
        UniqueConstraint("tenant_id", "connection_id", "assertion_digest"),
        Index(None, "digest"),
    )

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    connection_id: Mapped[UUID] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(Text, primary_key=True)
    expires_at: Mapped[datetime] = mapped_column(Moment)
    assertion_digest: Mapped[str | None] = mapped_column(Text)


class ScimUser(TenantRow):
    """What a directory sent about a user; ``id`` is the user's id.

    A person has at most one, so one connection manages them. ``attributes`` is what the directory
    sent, except ``userName``, ``externalId`` and ``active``. ``user_name_key`` is the user name as it
    is compared. ``has_mapped_role``: a group gives the person's role. A row with
    ``deleted_at`` is a tombstone: the resource is gone, the user remains.
    """

    __tablename__ = "scim_users"

    connection_id: Mapped[UUID] = mapped_column()
    user_name: Mapped[str] = mapped_column(Text)
    user_name_key: Mapped[str] = mapped_column(Text)
    external_id: Mapped[str] = mapped_column(Text, default="")
    attributes: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    has_mapped_role: Mapped[bool] = mapped_column(default=False)
    deleted_at: Mapped[datetime | None] = mapped_column(Moment)

    @classmethod
    def constraints(cls) -> tuple[Any, ...]:
        return (
            ForeignKeyConstraint(
                ["tenant_id", "id"], ["users.tenant_id", "users.id"], ondelete="CASCADE"
            ),
            *_of_connection(),
            Index(
                "uq_scim_users_user_name_key",
                "tenant_id",
                "connection_id",
                "user_name_key",
                unique=True,
                postgresql_where=text("deleted_at IS NULL"),
            ),
        )


class ScimEmail(Model):
    """An entry of a user's ``emails`` in lower case, so that filters find it by index.

    The index is a hash, because an address can be longer than an entry of a B-tree.
    """

    __tablename__ = "scim_emails"
    __table_args__ = (
        _references("user_id", ScimUser),
        Index(None, "value", postgresql_using="hash"),
    )

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    user_id: Mapped[UUID] = mapped_column(primary_key=True)
    position: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    value: Mapped[str] = mapped_column(Text)
    type: Mapped[str] = mapped_column(Text)
    display: Mapped[str] = mapped_column(Text)
    is_primary: Mapped[bool] = mapped_column()


class ScimGroup(TenantRow):
    """A group of a directory. Its name or id may give its members a role."""

    __tablename__ = "scim_groups"

    connection_id: Mapped[UUID] = mapped_column()
    display_name: Mapped[str] = mapped_column(Text)
    display_name_key: Mapped[str] = mapped_column(Text)
    external_id: Mapped[str] = mapped_column(Text, default="")

    @classmethod
    def constraints(cls) -> tuple[Any, ...]:
        return (
            *_of_connection(),
            UniqueConstraint("tenant_id", "connection_id", "display_name_key"),
        )


class ScimMember(Model):
    """A member of a group: a user, or another group. One of the two ids is the ``member_id``."""

    __tablename__ = "scim_members"
    __table_args__ = (
        _references("group_id", ScimGroup),
        _references("user_id", ScimUser),
        _references("nested_id", ScimGroup),
        Index(None, "tenant_id", "user_id"),
        Index(None, "tenant_id", "nested_id"),
    )

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    group_id: Mapped[UUID] = mapped_column(primary_key=True)
    member_id: Mapped[UUID] = mapped_column(primary_key=True)
    user_id: Mapped[UUID | None] = mapped_column()
    nested_id: Mapped[UUID | None] = mapped_column()
    display: Mapped[str] = mapped_column(Text, default="")


class ScimRequest(Model):
    """One of the last requests of a connection, without the values that it sent."""

    __tablename__ = "scim_requests"
    __table_args__ = (_references("connection_id", ScimConnection),)

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    connection_id: Mapped[UUID] = mapped_column(primary_key=True)
    slot: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    sent_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)
    method: Mapped[str] = mapped_column(Text)
    path: Mapped[str] = mapped_column(Text)
    status: Mapped[int] = mapped_column(SmallInteger)
    detail: Mapped[str] = mapped_column(Text)

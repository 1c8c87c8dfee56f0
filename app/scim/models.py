"""The users and groups that directories provision."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, ForeignKeyConstraint, Index, SmallInteger, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.connections.models import ScimConnection, references
from app.core.db.models import Moment, TenantRow
from app.extensions import Model

ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
"""The extension that has a person's department and manager, in ``attributes``."""


def _of_connection() -> tuple[ForeignKeyConstraint | Index, ...]:
    """The constraint and the indexes of a connection's resources."""
    return (
        references("connection_id", ScimConnection),
        Index(None, "tenant_id", "connection_id", "external_id"),
        Index(None, "tenant_id", "connection_id", "id"),
    )


class ScimUser(TenantRow):
    """What a directory sent about a user; ``id`` is the user's id.

    A person has at most one such row, so one connection manages the person. ``attributes`` is what
    the directory sent, except ``userName``, ``externalId`` and ``active``. ``user_name_key`` is the
    user name as it is compared. ``has_mapped_role``: a group gives the person's role. A row with
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

    constraints = (
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
        references("user_id", ScimUser),
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

    constraints = (
        *_of_connection(),
        UniqueConstraint("tenant_id", "connection_id", "display_name_key"),
    )


class ScimMember(Model):
    """A member of a group: a user, or another group. One of the two ids is the ``member_id``."""

    __tablename__ = "scim_members"
    __table_args__ = (
        references("group_id", ScimGroup),
        references("user_id", ScimUser),
        references("nested_id", ScimGroup),
        Index(None, "tenant_id", "user_id"),
        Index(None, "tenant_id", "nested_id"),
    )

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    group_id: Mapped[UUID] = mapped_column(primary_key=True)
    member_id: Mapped[UUID] = mapped_column(primary_key=True)
    user_id: Mapped[UUID | None] = mapped_column()
    nested_id: Mapped[UUID | None] = mapped_column()
    display: Mapped[str] = mapped_column(Text, default="")

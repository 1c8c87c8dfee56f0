"""Permissions of products, roles, their assignments, and the resources that these name."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db.models import Attributed, Moment, Row, TenantRow, updated_index
from app.core.json_text import Json


class ProductPermission(Attributed, Row):
    """A permission of the platform's product, such as ``invoices:approve``.

    It is held only while the flag ``requires_flag`` is on for the tenant, and the limit
    ``requires_limit`` has something left.
    """

    __tablename__ = "product_permissions"
    __table_args__ = (Index(None, "created_at", "id"), updated_index())
    resource_name = "permission"
    kind = "product"  # where the permissions of this service are listed too

    key: Mapped[str] = mapped_column(Text, unique=True)
    description: Mapped[str] = mapped_column(Text)
    group_name: Mapped[str] = mapped_column(Text)
    requires_flag: Mapped[str | None] = mapped_column(Text)
    requires_limit: Mapped[str | None] = mapped_column(Text)


class AccessRole(Attributed, Row):
    """A role of a tenant; with ``tenant_id`` None a template, which every tenant has.

    ``inherits`` is the key of a role of the same tenant, or of a template. ``assignable_by`` is the
    lowest role of a membership that may assign this role. The five roles of memberships are
    templates. The owner has every permission of a product, whatever ``permissions`` says.
    """

    __tablename__ = "roles"
    __table_args__ = (
        UniqueConstraint("tenant_id", "key", postgresql_nulls_not_distinct=True),
        Index(None, "tenant_id", "created_at", "id"),
        Index(None, "created_at", "id"),
        Index(None, "key"),
        Index(None, "inherits", postgresql_where=text("inherits IS NOT NULL")),
        updated_index(),
    )
    resource_name = "role"

    tenant_id: Mapped[UUID | None] = mapped_column(ForeignKey("tenants.id"))
    key: Mapped[str] = mapped_column(Text)
    name: Mapped[str] = mapped_column(Text)
    permissions: Mapped[list[str]] = mapped_column(ARRAY(Text))
    inherits: Mapped[str | None] = mapped_column(Text)
    assignable_by: Mapped[str] = mapped_column(Text)


class AccessResource(Attributed, TenantRow):
    """A resource of the product, by its name. A right on its parent holds for it too.

    Changes lock the tenant's row, so a parent exists, and no resource is below itself.
    """

    __tablename__ = "access_resources"
    __table_args__ = (
        Index(None, "type", "tenant_id", "id"),
        Index(None, "tenant_id", "parent_type", "parent_id"),
        updated_index(),
    )
    resource_name = "resource"

    type: Mapped[str] = mapped_column(Text, primary_key=True)
    # A name that the product gives, where other rows have a UUID.
    id: Mapped[str] = mapped_column(Text, primary_key=True)  # type: ignore[assignment]
    parent_type: Mapped[str | None] = mapped_column(Text)
    parent_id: Mapped[str | None] = mapped_column(Text)
    attributes: Mapped[dict[str, Json]] = mapped_column(JSONB)


def _unique_for(target: str) -> Index:
    return Index(
        f"uq_role_assignments_{target}",
        target,  # for the platform, which names no tenant
        "tenant_id",
        "resource_type",
        "resource_id",
        "role_id",
        unique=True,
        postgresql_nulls_not_distinct=True,
        postgresql_where=text(f"{target} IS NOT NULL"),
    )


def _list_of(target: str) -> Index:
    where = text(f"{target} IS NOT NULL")
    return Index(None, target, "created_at", "id", postgresql_where=where)


class RoleAssignment(Attributed, TenantRow):
    """A role of a membership, of the members of a group, or of an API key.

    It holds for one resource and those below it; without a resource, for the whole tenant. It has
    no effect from ``expires_at`` on. ``source`` says who made it.
    """

    __tablename__ = "role_assignments"

    membership_id: Mapped[UUID | None] = mapped_column()
    group_id: Mapped[UUID | None] = mapped_column()  # of one that ends, for a minute longer
    api_key_id: Mapped[UUID | None] = mapped_column(ForeignKey("api_keys.id", ondelete="CASCADE"))
    role_id: Mapped[UUID] = mapped_column(ForeignKey("roles.id"))
    resource_type: Mapped[str | None] = mapped_column(Text)
    resource_id: Mapped[str | None] = mapped_column(Text)
    expires_at: Mapped[datetime | None] = mapped_column(Moment)
    source: Mapped[str] = mapped_column(Text)

    constraints = (
        CheckConstraint("num_nonnulls(membership_id, group_id, api_key_id) = 1", name="target"),
        CheckConstraint("(resource_type IS NULL) = (resource_id IS NULL)", name="resource"),
        ForeignKeyConstraint(
            ["tenant_id", "membership_id"],
            ["memberships.tenant_id", "memberships.id"],
            ondelete="CASCADE",
        ),
        ForeignKeyConstraint(
            ["tenant_id", "resource_type", "resource_id"],
            ["access_resources.tenant_id", "access_resources.type", "access_resources.id"],
        ),
        *map(_unique_for, ("membership_id", "group_id", "api_key_id")),
        *map(_list_of, ("membership_id", "group_id", "api_key_id")),
        Index(None, "expires_at", postgresql_where=text("expires_at IS NOT NULL")),
        Index(None, "tenant_id", "role_id", "created_at", "id"),
        Index(None, "role_id", "created_at", "id"),
        Index(None, "tenant_id", "resource_type", "resource_id", "created_at", "id"),
        Index(None, "tenant_id", "resource_type", "resource_id", "role_id", "membership_id"),
        Index(None, "tenant_id", "created_at", "id"),
        Index(None, "created_at", "id"),
        updated_index(),
    )

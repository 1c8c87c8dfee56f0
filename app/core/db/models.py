"""Base classes of the models: identity, timestamps, version, tenant ownership."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, ForeignKey, ForeignKeyConstraint, Index, Text
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.orm import Mapped, declared_attr, mapped_column
from sqlalchemy.schema import SchemaItem
from uuid_utils.compat import uuid7

from app.core.clock import utcnow
from app.extensions import Model

Moment = TIMESTAMP(timezone=True)
UNBOUNDED = {"unbounded": True}
"""The ``info`` of a column, never NULL, whose values can be large (see :mod:`app.core.db.pages`).

The values of every other column are bounded where they are written; a row of them has at most about
40 KiB.
"""


def updated_index() -> Index:
    """An index for ``updated_after=``. A BRIN index, unlike a B-tree, allows HOT updates.

    With it an UPDATE takes as long as without one.
    """
    settings = {"pages_per_range": 16, "autosummarize": True}
    return Index(None, "updated_at", postgresql_using="brin", postgresql_with=settings)


class Row(Model):
    """A table with an id (UUIDv7), timestamps and a version.

    ``version`` starts at 1 and grows by one with each change; it is the ETag. Rows are immutable
    (see :class:`app.extensions.Record`); :mod:`app.core.db.queries` writes changes.
    """

    __abstract__ = True

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid7)
    created_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)
    updated_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)
    version: Mapped[int] = mapped_column(BigInteger, default=1)


class TenantRow(Row):
    """A row of one tenant: keyed ``(tenant_id, id)``, with a plain index on ``id``.

    Unique and foreign keys of a subclass begin with ``tenant_id`` too, so no row can point
    into another tenant. The migration forces row-level security on the table.
    """

    __abstract__ = True

    tenant_id: Mapped[UUID] = mapped_column(ForeignKey("tenants.id"), primary_key=True)
    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid7)

    @declared_attr.directive
    def __table_args__(cls) -> tuple[SchemaItem, ...]:  # noqa: N805 - declarative calls it on the class
        return (Index(None, "id"), *cls.constraints())

    @classmethod
    def constraints(cls) -> tuple[SchemaItem, ...]:
        """The table's own indexes and constraints; a subclass lists them here."""
        return ()


class OrganizationRow(TenantRow):
    """A tenant's row with a copy of the tenant's ``idp_org_id``.

    The composite foreign key makes PostgreSQL update the copies when ``idp_org_id`` changes.
    """

    __abstract__ = True

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    idp_org_id: Mapped[str] = mapped_column(Text)

    @classmethod
    def constraints(cls) -> tuple[SchemaItem, ...]:
        return (
            ForeignKeyConstraint(
                ["tenant_id", "idp_org_id"],
                ["tenants.id", "tenants.idp_org_id"],
                onupdate="CASCADE",
            ),
        )


class Attributed:
    """Who created and who last changed the row: an actor's id, see :mod:`app.core.actors`."""

    created_by_user_id: Mapped[str] = mapped_column(Text)
    updated_by_user_id: Mapped[str] = mapped_column(Text)

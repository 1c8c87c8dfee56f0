"""Base classes of the models, with id, timestamps, version and tenant."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar
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
"""Set it as ``info`` of a column that can have large values (see :mod:`app.core.db.pages`).

Such a column must not be NULL. The code that writes the other columns bounds their size, to about
40 KiB per row in total.
"""


def updated_index() -> Index:
    """An index for ``updated_after=``. It is a BRIN index, because a B-tree prevents HOT updates.

    A BRIN index does not make an UPDATE slower.
    """
    settings = {"pages_per_range": 16, "autosummarize": True}
    return Index(None, "updated_at", postgresql_using="brin", postgresql_with=settings)


class Row(Model):
    """A table with an id (UUIDv7), timestamps and a version.

    ``version`` starts at 1 and grows by one with each change. It is the ETag. Rows in Python are
    immutable (see :class:`app.extensions.Record`). :mod:`app.core.db.queries` writes changes.
    """

    __abstract__ = True

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid7)
    created_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)
    updated_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)
    version: Mapped[int] = mapped_column(BigInteger, default=1)


class TenantRow(Row):
    """A row of one tenant: primary key ``(tenant_id, id)``, and an index on ``id``.

    Unique and foreign keys of a subclass must begin with ``tenant_id`` too. So no row can refer to
    a row of another tenant. The migration must force row-level security on the table.
    """

    __abstract__ = True

    constraints: ClassVar[tuple[SchemaItem, ...]] = ()
    """The further indexes and constraints of the table. A subclass sets this."""

    tenant_id: Mapped[UUID] = mapped_column(ForeignKey("tenants.id"), primary_key=True)
    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid7)

    @declared_attr.directive
    def __table_args__(cls) -> tuple[SchemaItem, ...]:  # noqa: N805 - declarative calls it on the class
        return (Index(None, "id"), *cls.constraints)


class OrganizationRow(TenantRow):
    """A tenant's row with a copy of the tenant's ``idp_org_id``.

    When the tenant's ``idp_org_id`` changes, the composite foreign key updates the copies.
    """

    __abstract__ = True

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    idp_org_id: Mapped[str] = mapped_column(Text)

    @declared_attr.directive
    def __table_args__(cls) -> tuple[SchemaItem, ...]:  # noqa: N805 - as above
        columns = ["tenant_id", "idp_org_id"], ["tenants.id", "tenants.idp_org_id"]
        key = ForeignKeyConstraint(*columns, onupdate="CASCADE")
        return (Index(None, "id"), key, *cls.constraints)


class Attributed:
    """The ids of the actors who created and last changed the row, see :mod:`app.core.actors`."""

    created_by_user_id: Mapped[str] = mapped_column(Text)
    updated_by_user_id: Mapped[str] = mapped_column(Text)

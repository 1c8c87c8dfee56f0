"""Base classes of the models: identity, timestamps, version, tenant ownership."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, ForeignKey, ForeignKeyConstraint, Index, Text
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.orm import Mapped, declared_attr, mapped_column
from sqlalchemy.orm.attributes import flag_modified
from uuid_utils.compat import uuid7

from app.core import json
from app.core.times import utcnow
from app.extensions import db

Moment = TIMESTAMP(timezone=True)


@dataclass(frozen=True)
class Change:
    """What a change did to a row: the old and the new value of each field that differs."""

    before: dict[str, Any]
    after: dict[str, Any]


class Row(db.Model):  # type: ignore[name-defined]
    """A row with an id (UUIDv7), timestamps and a version.

    ``version`` starts at 1 and grows by one with each change; it is the ETag. An
    UPDATE names the version it read, so a change that was lost raises instead.
    """

    __abstract__ = True

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid7)
    created_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)
    updated_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)
    version: Mapped[int] = mapped_column(BigInteger, default=1)

    @declared_attr.directive
    def __mapper_args__(cls) -> dict[str, Any]:  # noqa: N805 - declarative calls it on the class
        return {"version_id_col": cls.__table__.c.version}

    def assign(self, values: Mapping[str, Any], *, actor_id: str | None = None) -> Change | None:
        """Set the fields that differ; None where nothing does (the row is then untouched).

        Also moves ``updated_at`` and, where the row has it, ``updated_by_user_id``.
        """
        changed = {
            name: value for name, value in values.items() if differs(getattr(self, name), value)
        }
        if not changed:
            return None
        before = {name: getattr(self, name) for name in changed}
        for name, value in changed.items():
            setattr(self, name, value)
            flag_modified(self, name)  # or 1 → 1.0 in a JSON column would pass for no change
        self.updated_at = utcnow()
        if actor_id is not None and hasattr(self, "updated_by_user_id"):
            self.updated_by_user_id = actor_id
        return Change(before, changed)


class TenantRow(Row):
    """A row of one tenant: keyed ``(tenant_id, id)``, with a plain index on ``id``.

    Unique and foreign keys of a subclass begin with ``tenant_id`` too, so no row can point
    into another tenant. The migration forces row-level security on the table.
    """

    __abstract__ = True

    tenant_id: Mapped[UUID] = mapped_column(ForeignKey("tenants.id"), primary_key=True)
    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid7)

    @declared_attr.directive
    def __table_args__(cls) -> tuple[Any, ...]:  # noqa: N805 - declarative calls it on the class
        return (Index(None, "id"), *cls.constraints())

    @classmethod
    def constraints(cls) -> tuple[Any, ...]:
        """The table's own indexes and constraints; a subclass lists them here."""
        return ()


class OrganizationRow(TenantRow):
    """A tenant's row that also shows the tenant's ``idp_org_id``.

    The composite foreign key makes the database itself carry a changed ``idp_org_id`` over.
    """

    __abstract__ = True

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    idp_org_id: Mapped[str] = mapped_column(Text)

    @classmethod
    def constraints(cls) -> tuple[Any, ...]:
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


def differs(old: Any, new: Any) -> bool:
    """Whether two values differ as stored: ``True``, ``1`` and ``1.0`` are three values."""
    if type(old) is not type(new) or old != new:
        return True
    return isinstance(old, dict | list) and json.dumps(old) != json.dumps(new)

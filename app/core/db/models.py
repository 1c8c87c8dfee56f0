"""Base classes of the models: identity, timestamps, version, tenant ownership."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, cast
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ForeignKey,
    ForeignKeyConstraint,
    FromClause,
    Index,
    Text,
    Update,
    bindparam,
    update,
)
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.orm import Mapped, declared_attr, mapped_column
from uuid_utils.compat import uuid7

from app.core import json_text
from app.core.clock import utcnow
from app.core.db import statements, transactions
from app.extensions import db

Moment = TIMESTAMP(timezone=True)


@dataclass(frozen=True)
class Change:
    """What a change did to a row: the old and the new value of each field that differs."""

    before: dict[str, Any]
    after: dict[str, Any]


class Row(db.Model):  # type: ignore[name-defined]
    """A row with an id (UUIDv7), timestamps and a version.

    ``version`` starts at 1 and grows by one with each change; it is the ETag. Rows change by
    :meth:`assign` alone, whose UPDATE names the version it read: a change that would be lost
    fails the transaction instead.
    """

    __abstract__ = True

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid7)
    created_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)
    updated_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)
    version: Mapped[int] = mapped_column(BigInteger, default=1)

    def assign(
        self,
        values: Mapping[str, Any],
        *,
        actor_id: str | None = None,
        beside: Mapping[str, Any] | None = None,
    ) -> Change | None:
        """Set the fields that differ; None where nothing does (the row is then untouched).

        With a change go, without being part of it: ``updated_at``, ``updated_by_user_id`` where
        the row has it, what follows from the values (:meth:`consequences`), and ``beside``.
        The UPDATE travels with the next statement, or with the COMMIT.
        """
        changed = {
            name: value for name, value in values.items() if differs(getattr(self, name), value)
        }
        if not changed:
            return None
        before = {name: getattr(self, name) for name in changed}
        written = {
            **changed,
            **self.consequences(changed),
            **(beside or {}),
            "updated_at": utcnow(),
        }
        if actor_id is not None and isinstance(self, Attributed):
            written["updated_by_user_id"] = actor_id
        self._write(written)
        return Change(before, changed)

    @classmethod
    def consequences(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """The columns that always follow from others, where ``values`` has those."""
        return {}

    def _write(self, values: Mapping[str, Any]) -> None:
        transactions.flush_session()  # a row that is being created gets its id and version
        place = {f"old_{name}": getattr(self, name) for name in _key(self.__table__)}
        statements.write(
            _update(cast("Any", type(self)), tuple(values)),
            {**values, **place, "old_version": self.version},
            changes_one=True,
        )
        self.__dict__.update(values, version=self.version + 1)


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


@cache
def _key(table: FromClause) -> tuple[str, ...]:
    return tuple(column.name for column in table.primary_key)


@lru_cache(maxsize=500)
def _update(model: Any, names: tuple[str, ...]) -> Update:
    """There is one for each set of columns, and a request chooses the set: not all are kept."""
    table = model.__table__
    place = [column == bindparam(f"old_{column.name}") for column in table.primary_key]
    statement = update(table).where(*place, table.c.version == bindparam("old_version"))
    values = {name: bindparam(name, type_=table.c[name].type) for name in names}
    statement = statement.values(**values, version=table.c.version + 1)
    return statements.prepare(statement, for_good=False)


def differs(old: Any, new: Any) -> bool:
    """Whether two values differ as stored: ``True``, ``1`` and ``1.0`` are three values."""
    if type(old) is not type(new) or old != new:
        return True
    return isinstance(old, dict | list) and json_text.dumps(old) != json_text.dumps(new)

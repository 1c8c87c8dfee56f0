"""The tables of the search: the terms, and the progress of their build."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from sqlalchemy import BigInteger, Index, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.clock import utcnow
from app.core.db.models import Moment
from app.extensions import Model


class EntityType(StrEnum):
    """What can be found."""

    TENANT = "tenant"
    USER = "user"
    SUBSCRIPTION = "subscription"
    EMAIL_MESSAGE = "email_message"


class SearchTerm(Model):
    """One term under which one row is found; see :mod:`app.search.terms`.

    ``tenant_id`` of a tenant's own terms is its id, and that of e-mail messages, which belong to no
    tenant, is :data:`app.core.db.tenancy.PLATFORM_TENANT_ID`. So it is not a foreign key. The
    primary key serves a search in one tenant, the index a search in all. The collation is C,
    because row-level security lets only leakproof comparisons use an index, which LIKE is not.
    """

    __tablename__ = "search_terms"
    __table_args__ = (Index(None, "entity_type", "term", "tenant_id", "entity_id"),)

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    entity_type: Mapped[str] = mapped_column(Text, primary_key=True)
    term: Mapped[str] = mapped_column(Text(collation="C"), primary_key=True)
    entity_id: Mapped[UUID] = mapped_column(primary_key=True)


class SearchBuild(Model):
    """How far the terms of the rows of one entity type are built.

    ``position`` is the id of the last row that the build has visited. ``is_settled`` false means
    that rows are left.
    """

    __tablename__ = "search_builds"

    entity_type: Mapped[str] = mapped_column(Text, primary_key=True)
    is_settled: Mapped[bool] = mapped_column(default=False)
    position: Mapped[UUID | None]
    done: Mapped[int] = mapped_column(BigInteger, default=0)
    total: Mapped[int] = mapped_column(BigInteger, default=0)
    updated_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)

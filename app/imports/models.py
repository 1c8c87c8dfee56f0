"""Imports: a file of tenants, users and more, its pieces until it is applied, and its faults."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, LargeBinary, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db.models import Moment, Row
from app.extensions import Model


class ImportState(StrEnum):
    """The state of an import. Faulty lines do not make an import ``failed``."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


class Import(Row):
    """One file of JSON Lines, applied in slices.

    ``size`` and ``position`` are bytes: what lies before ``position`` is applied. ``counts`` has
    the number of lines by type and outcome. ``error`` is why the import has failed.
    """

    __tablename__ = "imports"
    __table_args__ = (
        Index(None, "created_at", "id"),
        Index(None, "state", "created_at", "id"),
        Index("ix_imports_unfinished", "updated_at", postgresql_where=text("finished_at IS NULL")),
    )

    created_by_user_id: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(Text, default=ImportState.PENDING.value)
    size: Mapped[int] = mapped_column(BigInteger, default=0)
    position: Mapped[int] = mapped_column(BigInteger, default=0)
    lines_total: Mapped[int] = mapped_column(BigInteger, default=0)
    lines_done: Mapped[int] = mapped_column(BigInteger, default=0)
    lines_failed: Mapped[int] = mapped_column(BigInteger, default=0)
    counts: Mapped[dict[str, dict[str, int]]] = mapped_column(JSON, default=dict)
    error: Mapped[str] = mapped_column(Text, default="")
    finished_at: Mapped[datetime | None] = mapped_column(Moment)


class ImportPiece(Model):
    """A part of an import's file. All pieces but the last have the same size."""

    __tablename__ = "import_pieces"

    import_id: Mapped[UUID] = mapped_column(ForeignKey("imports.id"), primary_key=True)
    number: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    body: Mapped[bytes] = mapped_column(LargeBinary)


class ImportFault(Model):
    """A line that was not applied, and its errors in the form of a 422.

    ``idp_org_id`` and ``name`` are the line's own ids, ``""`` where it has none.
    """

    __tablename__ = "import_faults"

    import_id: Mapped[UUID] = mapped_column(ForeignKey("imports.id"), primary_key=True)
    line: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    type: Mapped[str] = mapped_column(Text)
    idp_org_id: Mapped[str] = mapped_column(Text)
    name: Mapped[str] = mapped_column(Text)
    errors: Mapped[list[dict[str, Any]]] = mapped_column(JSON)

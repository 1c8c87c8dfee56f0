"""The table of what an identity provider's events said about its objects."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Index, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.clock import utcnow
from app.core.db.models import Moment
from app.extensions import Model


class IdentityObject(Model):
    """An object of a provider after the events so far (:class:`app.identity_sync.store.Kind`).

    ``state`` is :class:`app.identity_sync.merge_state.State` as JSON. ``organization_id`` and
    ``user_id`` are those that it names. The row of a deleted object stays, so that a late event
    cannot create it again. ``is_waiting``: its organization or user is not known, or it is a user
    of whom no membership is known. ``verified_domain`` is the domain of an active user's verified
    address, with its labels in reverse: ``com.example``.
    """

    __tablename__ = "identity_objects"
    __table_args__ = (
        Index(
            None, "source", "organization_id", postgresql_where=text("organization_id IS NOT NULL")
        ),
        Index(None, "source", "user_id", postgresql_where=text("user_id IS NOT NULL")),
        Index(
            None,
            "verified_domain",
            "object_id",
            postgresql_where=text("verified_domain IS NOT NULL"),
        ),
        Index("ix_identity_objects_waiting", "updated_at", postgresql_where=text("is_waiting")),
        Index(
            "ix_identity_objects_waiting_since", "created_at", postgresql_where=text("is_waiting")
        ),
    )

    source: Mapped[str] = mapped_column(Text, primary_key=True)
    kind: Mapped[str] = mapped_column(Text, primary_key=True)
    object_id: Mapped[str] = mapped_column(Text, primary_key=True)
    organization_id: Mapped[str | None] = mapped_column(Text)
    user_id: Mapped[str | None] = mapped_column(Text)
    verified_domain: Mapped[str | None] = mapped_column(Text(collation="C"))
    is_deleted: Mapped[bool]
    is_waiting: Mapped[bool] = mapped_column(default=False)
    state: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)
    updated_at: Mapped[datetime] = mapped_column(Moment, default=utcnow, onupdate=utcnow)

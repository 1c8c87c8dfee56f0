"""Users: the people of a tenant."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import JSON, ForeignKeyConstraint, Index, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.core.clock import utcnow
from app.core.db.models import UNBOUNDED, Attributed, Moment, OrganizationRow, updated_index
from app.extensions import Model

ERASED_SUBJECT = "erased:"  # what the idp_user_id of an erased user begins with


class User(Attributed, OrganizationRow):
    """One person in one tenant. ``meta_data`` is any JSON object, stored as it was sent.

    ``email_key`` is :func:`app.users.emails.email_key` of ``email``, and is written with it.
    """

    __tablename__ = "users"

    idp_user_id: Mapped[str] = mapped_column(Text)
    email: Mapped[str] = mapped_column(Text)
    email_key: Mapped[str] = mapped_column(Text, server_default="")
    first_name: Mapped[str] = mapped_column(Text, default="", info=UNBOUNDED)
    last_name: Mapped[str] = mapped_column(Text, default="", info=UNBOUNDED)
    is_active: Mapped[bool] = mapped_column(default=True)
    meta_data: Mapped[dict[str, object]] = mapped_column(JSON, default=dict)

    constraints = (
        UniqueConstraint("tenant_id", "idp_user_id"),
        Index(None, "tenant_id", "created_at", "id"),
        Index(None, "email_key", "tenant_id"),
        # For processes of the release before email_key; a later release can drop it.
        Index(None, "email", postgresql_using="hash"),
        Index(None, "idp_user_id"),
        Index(None, "created_at", "id"),
        updated_index(),
    )


class UserErasure(Model):
    """A requested erasure of a user, until the user is gone.

    ``is_everywhere``: a platform credential asked for it, so it may also erase what is stored about
    the person outside the tenant. ``worked_at`` is when a worker last tried.
    """

    __tablename__ = "user_erasures"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "user_id"], [User.tenant_id, User.id], ondelete="CASCADE"
        ),
    )

    tenant_id: Mapped[UUID] = mapped_column(primary_key=True)
    user_id: Mapped[UUID] = mapped_column(primary_key=True)
    requested_at: Mapped[datetime] = mapped_column(Moment, default=utcnow)
    requested_by: Mapped[str] = mapped_column(Text)
    worked_at: Mapped[datetime] = mapped_column(Moment, default=utcnow, index=True)
    is_everywhere: Mapped[bool]

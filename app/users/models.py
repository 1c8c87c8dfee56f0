"""Users: the people of a tenant."""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, Index, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db.models import Attributed, OrganizationRow, updated_index


class User(Attributed, OrganizationRow):
    """One person in one tenant. ``meta_data`` is any JSON object, stored as it was sent.

    ``email_key`` is :func:`app.users.emails.email_key` of ``email``, and is written with it.
    """

    __tablename__ = "users"

    idp_user_id: Mapped[str] = mapped_column(Text)
    email: Mapped[str] = mapped_column(Text)
    email_key: Mapped[str] = mapped_column(Text, server_default="")
    first_name: Mapped[str] = mapped_column(Text, default="")
    last_name: Mapped[str] = mapped_column(Text, default="")
    is_active: Mapped[bool] = mapped_column(default=True)
    meta_data: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)

    @classmethod
    def constraints(cls) -> tuple[Any, ...]:
        return (
            *super().constraints(),
            UniqueConstraint("tenant_id", "idp_user_id"),
            Index(None, "tenant_id", "created_at", "id"),
            Index(None, "email_key", "tenant_id"),
            # For processes of the release before email_key; a later release can drop it.
            Index(None, "email", postgresql_using="hash"),
            Index(None, "idp_user_id"),
            Index(None, "created_at", "id"),
            updated_index(),
        )

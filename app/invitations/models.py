"""Invitations: e-mail addresses that may become members of the tenant."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from sqlalchemy import JSON, BigInteger, ColumnElement, Index, Label, Text, and_, case, func, text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db.models import Attributed, Moment, TenantRow, updated_index


class InvitationState(StrEnum):
    """The state of an invitation. A pending invitation takes a seat."""

    PENDING = "pending"
    ACCEPTED = "accepted"
    REVOKED = "revoked"
    EXPIRED = "expired"


API = "api"
"""The source of an invitation of this service; otherwise it is the identity provider's name."""


class Invitation(Attributed, TenantRow):
    """An invitation of an e-mail address. Its state follows from the times, see :data:`STATE`.

    ``digest`` is that of the token, and None for an invitation of the identity provider.
    ``rotation`` counts the tokens. ``acts_as`` is the role with which it is accepted: that of
    whoever created it. ``user_id`` is the user who has accepted it. ``mail_at``: when the service
    sends the next mail; None if none is due. ``mails`` counts the attempts.
    """

    __tablename__ = "invitations"

    email: Mapped[str] = mapped_column(Text)
    email_key: Mapped[str] = mapped_column(Text)
    role: Mapped[str] = mapped_column(Text)
    acts_as: Mapped[str] = mapped_column(Text)
    meta_data: Mapped[dict[str, object]] = mapped_column(JSON, default=dict)
    source: Mapped[str] = mapped_column(Text, default=API)
    idp_invitation_id: Mapped[str] = mapped_column(Text, default="")
    digest: Mapped[str | None] = mapped_column(Text)
    rotation: Mapped[int] = mapped_column(BigInteger, default=1)
    expires_at: Mapped[datetime] = mapped_column(Moment)
    accepted_at: Mapped[datetime | None] = mapped_column(Moment)
    revoked_at: Mapped[datetime | None] = mapped_column(Moment)
    user_id: Mapped[UUID | None]
    mail_at: Mapped[datetime | None] = mapped_column(Moment)
    mails: Mapped[int] = mapped_column(BigInteger, default=0)

    constraints = (
        Index(None, "digest"),
        Index(None, "tenant_id", "created_at", "id"),
        Index(None, "created_at", "id"),
        Index(None, "email_key", "tenant_id"),
        Index(None, "expires_at"),
        Index(
            "ix_invitations_open",
            "tenant_id",
            "expires_at",
            postgresql_where=text("accepted_at IS NULL AND revoked_at IS NULL"),
        ),
        Index(
            "uq_invitations_tenant_id_source_idp_invitation_id",
            "tenant_id",
            "source",
            "idp_invitation_id",
            unique=True,
            postgresql_where=text("idp_invitation_id <> ''"),
        ),
        Index(None, "tenant_id", "user_id", postgresql_where=text("user_id IS NOT NULL")),
        Index(None, "mail_at", postgresql_where=text("mail_at IS NOT NULL")),
        updated_index(),
    )


_IS_OPEN = and_(Invitation.accepted_at.is_(None), Invitation.revoked_at.is_(None))
IS_PENDING = and_(_IS_OPEN, Invitation.expires_at > func.now())
IN_STATE: dict[InvitationState, ColumnElement[bool]] = {
    InvitationState.PENDING: IS_PENDING,
    InvitationState.ACCEPTED: Invitation.accepted_at.is_not(None),
    InvitationState.REVOKED: and_(
        Invitation.accepted_at.is_(None), Invitation.revoked_at.is_not(None)
    ),
    InvitationState.EXPIRED: and_(_IS_OPEN, Invitation.expires_at <= func.now()),
}
"""What is true in each state, in terms that have indexes and statistics."""
STATE: Label[str] = case(
    *((is_in_state, state.value) for state, is_in_state in IN_STATE.items())
).label("state")
"""A column: the invitation's state by the clock of PostgreSQL."""

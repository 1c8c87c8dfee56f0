"""Domains of tenants, and people whom a domain suggests as members."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from sqlalchemy import ForeignKeyConstraint, Index, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db.models import Attributed, Moment, TenantRow, updated_index


class DomainState(StrEnum):
    """Whether the tenant has shown that the domain is its own."""

    PENDING = "pending"
    VERIFIED = "verified"
    FAILED = "failed"
    LAPSED = "lapsed"


class Join(StrEnum):
    """What happens to a new person with an address of a verified domain."""

    OFF = "off"
    SUGGEST = "suggest"
    AUTO = "auto"


class CheckError(StrEnum):
    """Why a check has failed."""

    NO_RECORD = "no_record"
    OTHER_VALUE = "other_value"
    NO_ANSWER = "no_answer"
    BAD_ANSWER = "bad_answer"
    DOMAIN_TAKEN = "domain_taken"


class JoinRequestState(StrEnum):
    """Whether a suggested person has become a member."""

    PENDING = "pending"
    ACCEPTED = "accepted"
    DECLINED = "declined"


class Domain(Attributed, TenantRow):
    """A domain that a tenant says is its own. One tenant at most has it ``verified``.

    ``name`` has A-labels, ``display_name`` is what people read. The TXT record ``record_name`` with
    ``record_value`` verifies it. ``unconfirmed_since`` is when
    the checks began that have all failed: the creation, the last request for a check, or a verified
    domain's first failed check. It is NULL after a check that found the record. ``next_check_at`` is
    NULL where nobody looks any more.
    """

    __tablename__ = "domains"

    name: Mapped[str] = mapped_column(Text)
    display_name: Mapped[str] = mapped_column(Text)
    record_name: Mapped[str] = mapped_column(Text)
    record_value: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(Text, default=DomainState.PENDING.value)
    include_subdomains: Mapped[bool]
    join: Mapped[str] = mapped_column(Text)
    join_role: Mapped[str] = mapped_column(Text)
    enforce_sso: Mapped[bool]
    error: Mapped[str | None] = mapped_column(Text)
    checked_at: Mapped[datetime | None] = mapped_column(Moment)
    next_check_at: Mapped[datetime | None] = mapped_column(Moment)
    verified_at: Mapped[datetime | None] = mapped_column(Moment)
    unconfirmed_since: Mapped[datetime | None] = mapped_column(Moment)

    constraints = (
        UniqueConstraint("tenant_id", "name"),
        Index(
            "uq_domains_verified_name",
            "name",
            unique=True,
            postgresql_where=text("state = 'verified'"),
        ),
        Index(None, "name"),
        Index(None, "state", "created_at", "id"),
        Index(None, "next_check_at", postgresql_where=text("next_check_at IS NOT NULL")),
        Index(None, "tenant_id", "created_at", "id"),
        Index(None, "created_at", "id"),
        updated_index(),
    )


class JoinRequest(Attributed, TenantRow):
    """A person with an address of a verified domain who is, or may become, a member by it.

    ``domain`` is the domain's name. ``user_id`` is the user of an ``accepted`` request. A person
    whom the domain admits at once has a request too.
    """

    __tablename__ = "join_requests"

    domain: Mapped[str] = mapped_column(Text)
    idp_user_id: Mapped[str] = mapped_column(Text)
    email: Mapped[str] = mapped_column(Text)
    first_name: Mapped[str] = mapped_column(Text)
    last_name: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(Text)
    user_id: Mapped[UUID | None] = mapped_column()

    constraints = (
        ForeignKeyConstraint(["tenant_id", "user_id"], ["users.tenant_id", "users.id"]),
        UniqueConstraint("tenant_id", "idp_user_id"),
        Index(None, "idp_user_id"),
        Index(None, "tenant_id", "user_id"),
        Index(None, "tenant_id", "state", "created_at", "id"),
        Index(None, "state", "created_at", "id"),
        Index(None, "tenant_id", "created_at", "id"),
        Index(None, "created_at", "id"),
        updated_index(),
    )

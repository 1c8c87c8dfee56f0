"""Customers at billing providers with their tenants, and the comparisons with the providers."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import JSON, Index, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db.models import Moment, Row, TenantRow, updated_index
from app.core.json_text import Json


class BillingCustomer(TenantRow):
    """The tenant of a customer at a billing provider.

    ``is_manual``: an operator has mapped the customer. Otherwise the tenant is from the customer's
    metadata, at the provider's time ``source_timestamp``, or from a read if that is None. A
    customer has one row, so that it has one tenant: the unique key is not the tenant's own.
    """

    __tablename__ = "billing_customers"
    resource_name = "customer"  # in error codes

    provider: Mapped[str] = mapped_column(Text)
    customer_id: Mapped[str] = mapped_column(Text)
    is_manual: Mapped[bool]
    source_timestamp: Mapped[datetime | None] = mapped_column(Moment)

    constraints = (
        UniqueConstraint("customer_id", "provider"),
        Index(None, "tenant_id", "created_at", "id"),
        Index(None, "created_at", "id"),
        updated_index(),
    )


class BillingComparison(Row):
    """The last comparison with a billing provider, or the comparison that is under way.

    ``finished_at`` is the end of the last complete one. ``cursor`` is that of the next page. After
    the last page, rows that no page had are checked; ``after`` is the last of these. ``counts`` are
    numbers of subscriptions. ``error`` is why it cannot continue, or what was wrong with
    the last one.
    """

    __tablename__ = "billing_comparisons"
    __table_args__ = (UniqueConstraint("provider"),)

    provider: Mapped[str] = mapped_column(Text)
    started_at: Mapped[datetime] = mapped_column(Moment)
    finished_at: Mapped[datetime | None] = mapped_column(Moment)
    cursor: Mapped[str] = mapped_column(Text, default="")
    after: Mapped[UUID | None]
    counts: Mapped[dict[str, Json]] = mapped_column(JSON, default=dict)
    error: Mapped[str] = mapped_column(Text, default="")

    @property
    def is_running(self) -> bool:
        return self.finished_at is None or self.finished_at < self.started_at

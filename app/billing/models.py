"""Customers at billing providers, and the tenants that they are."""

from __future__ import annotations

from sqlalchemy import Index, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.core.db.models import TenantRow, updated_index


class BillingCustomer(TenantRow):
    """The tenant of a customer at a billing provider.

    ``is_manual``: an operator has said it; otherwise the customer's metadata at the provider.
    A customer has one row, so that it has one tenant: the unique key is not the tenant's own.
    """

    __tablename__ = "billing_customers"
    resource_name = "customer"  # in error codes

    provider: Mapped[str] = mapped_column(Text)
    customer_id: Mapped[str] = mapped_column(Text)
    is_manual: Mapped[bool]

    constraints = (
        UniqueConstraint("customer_id", "provider"),
        Index(None, "tenant_id", "created_at", "id"),
        Index(None, "created_at", "id"),
        updated_index(),
    )

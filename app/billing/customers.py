"""The tenants of customers at billing providers: what their metadata or an operator says."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import bindparam
from sqlalchemy.dialects.postgresql import insert

from app.audit import service as audit
from app.billing.models import BillingCustomer
from app.core.actors import SYSTEM_BILLING, Actor
from app.core.db import queries
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import Change
from app.core.db.statements import Statement
from app.core.db.writes import with_defaults
from app.core.errors import Invalid, NotFound, value_error
from app.inbox.service import release
from app.tenants.models import Tenant

FIELDS = ("provider", "customer_id", "is_manual")
WRITTEN = ("tenant_id", "is_manual", "source_timestamp", "updated_at")
_table = BillingCustomer.__table__
_row = insert(_table).values({c.name: bindparam(c.name, type_=c.type) for c in _table.columns})
SAVE = Statement(
    "billing_customers.save",
    _row.on_conflict_do_update(
        index_elements=["provider", "customer_id"],
        set_={
            **{name: _row.excluded[name] for name in WRITTEN},
            "version": BillingCustomer.version + 1,
        },
    ).returning(*_table.columns),
)
# Each event of a customer contains the id. A job finds those that write it otherwise.
FIND_WAITING = Statement(
    "webhook_events.find_waiting_of_customer",
    "SELECT id FROM webhook_events WHERE status = 'waiting_tenant' AND source = :provider"
    " AND position(convert_to(:customer_id, 'UTF8') IN body) > 0",
    prepare=False,
)


def list_customers(
    paging: Paging = FIRST_PAGE, *, tenant_id: UUID | None = None, **equal: object
) -> Page:
    """One page of the customers whose columns equal all values of ``equal``."""
    return paginate(BillingCustomer, paging, equal=equal, tenant_id=tenant_id)


def find(provider: str, customer_id: str) -> BillingCustomer | None:
    return queries.find_row(BillingCustomer, provider=provider, customer_id=customer_id)


def set_tenant(
    provider: str,
    customer_id: str,
    tenant_id: UUID,
    *,
    is_manual: bool = True,
    at: datetime | None = None,
    actor: Actor,
) -> BillingCustomer:
    """Map a customer to a tenant, and apply its waiting events; Invalid for an unknown tenant."""
    if queries.find_row(Tenant, id=tenant_id) is None:
        reason = "there is no such tenant"
        raise Invalid(value_error(["body", "tenant_id"], reason, str(tenant_id)))
    known = find(provider, customer_id)
    queries.check_precondition(known)
    said = {"tenant_id": tenant_id, "is_manual": is_manual}
    change = Change({}, said) if known is None else queries.difference(known, said)
    if known is not None and change is None and known.source_timestamp == at:
        return known
    place = {"provider": provider, "customer_id": customer_id}
    values = {**place, **said, "source_timestamp": at}
    row: BillingCustomer = SAVE.one(**with_defaults(_table, values))
    if change is not None:
        audit.record("billing_customer.mapped", row, change, actor=actor)
        release(FIND_WAITING.scalars(**place))
    return row


def note(provider: str, customer_id: str, tenant_id: UUID | None, at: datetime | None) -> bool:
    """Remember what the customer's metadata says; None: that it names no tenant.

    What an operator has said stays. False: something newer is known. A read (``at`` is None) is
    newer than any event.
    """
    known = find(provider, customer_id)
    if known is not None and known.is_manual:
        return True
    newest = None if known is None else known.source_timestamp
    if at is not None and newest is not None and at < newest:
        return False
    if tenant_id is not None:
        set_tenant(provider, customer_id, tenant_id, is_manual=False, at=at, actor=SYSTEM_BILLING)
    elif known is not None:
        delete(provider, customer_id, actor=SYSTEM_BILLING)
    return True


def delete(provider: str, customer_id: str, *, actor: Actor) -> None:
    """Delete the mapping of a customer; its known subscriptions stay. Raises NotFound."""
    known = find(provider, customer_id)
    if known is None:
        raise NotFound.of(BillingCustomer)
    queries.check_precondition(known)
    before = Change({name: getattr(known, name) for name in FIELDS}, {})
    audit.record("billing_customer.deleted", known, before, actor=actor)
    queries.delete_row(BillingCustomer, known)

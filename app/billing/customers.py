"""The tenants of customers at billing providers: what their metadata or an operator says."""

from __future__ import annotations

from uuid import UUID

from app.audit import service as audit
from app.billing.models import BillingCustomer
from app.core.actors import Actor
from app.core.db import queries
from app.core.db.pages import FIRST_PAGE, Page, Paging, paginate
from app.core.db.queries import Change
from app.core.db.statements import Statement
from app.core.db.writes import insert_row
from app.core.errors import Invalid, NotFound, value_error
from app.inbox.service import release
from app.tenants.models import Tenant

FIELDS = ("provider", "customer_id", "is_manual")
LOCK = Statement(
    "billing_customers.lock_key",
    "SELECT pg_advisory_xact_lock(hashtextextended(concat('customer ', CAST(:key AS text)), 0))",
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
    provider: str, customer_id: str, tenant_id: UUID, *, actor: Actor
) -> BillingCustomer:
    """Map a customer to a tenant, and apply its waiting events; Invalid for an unknown tenant."""
    if queries.find_row(Tenant, id=tenant_id) is None:
        reason = "there is no such tenant"
        raise Invalid(value_error(["body", "tenant_id"], reason, str(tenant_id)))
    found = _put(provider, customer_id, tenant_id, is_manual=True, actor=actor)
    _release(provider, customer_id)
    return found


def note(provider: str, customer_id: str, tenant_id: UUID | None, *, actor: Actor) -> None:
    """Remember what the customer's metadata says; None: that it names no tenant."""
    if tenant_id is None:
        known = find(provider, customer_id)
        if known is not None and not known.is_manual:
            _delete(known, actor=actor)
        return
    _put(provider, customer_id, tenant_id, is_manual=False, actor=actor)
    _release(provider, customer_id)


def delete(provider: str, customer_id: str, *, actor: Actor) -> None:
    """Delete the mapping of a customer; its known subscriptions stay. Raises NotFound."""
    LOCK.execute(key=f"{provider} {customer_id}")
    known = find(provider, customer_id)
    if known is None:
        raise NotFound.of(BillingCustomer)
    queries.check_precondition(known)
    _delete(known, actor=actor)


def _release(provider: str, customer_id: str) -> None:
    release(FIND_WAITING.scalars(provider=provider, customer_id=customer_id))


def _put(
    provider: str, customer_id: str, tenant_id: UUID, *, is_manual: bool, actor: Actor
) -> BillingCustomer:
    """Write the customer's only row. One of another tenant is replaced: its key begins with that."""
    LOCK.execute(key=f"{provider} {customer_id}")
    known = find(provider, customer_id)
    if known is not None and known.tenant_id == tenant_id:
        row, change = queries.update_row(BillingCustomer, known, {"is_manual": is_manual})
        if change is not None:
            audit.record("billing_customer.updated", row, change, actor=actor)
        return row
    if known is not None:
        _delete(known, actor=actor)
    place = {"tenant_id": tenant_id, "provider": provider, "customer_id": customer_id}
    row = insert_row(BillingCustomer, {**place, "is_manual": is_manual})
    audit.record_creation("billing_customer.created", row, actor=actor)
    return row


def _delete(row: BillingCustomer, *, actor: Actor) -> None:
    before = Change({name: getattr(row, name) for name in FIELDS}, {})
    audit.record("billing_customer.deleted", row, before, actor=actor)
    queries.delete_row(BillingCustomer, row)

"""Looking behind the API."""

from __future__ import annotations

from sqlalchemy import select

from app.audit.models import AuditEvent
from app.extensions import db
from app.subscriptions.models import Subscription
from app.tenants.models import Tenant
from tests.factories import platform_transaction


def plan_of(tenant: Tenant) -> str:
    with platform_transaction():
        return db.session.scalar(select(Tenant.plan_name).where(Tenant.id == tenant.id))


def stored(subscription: Subscription) -> Subscription:
    """The row as it is now."""
    with platform_transaction():
        return db.session.get_one(Subscription, (subscription.tenant_id, subscription.id))


def audit_events(tenant: Tenant) -> list[AuditEvent]:
    with platform_transaction():
        statement = select(AuditEvent).where(AuditEvent.tenant_id == tenant.id)
        return list(db.session.scalars(statement.order_by(AuditEvent.id)))


def audit_actions(tenant: Tenant) -> list[str]:
    return [event.action for event in audit_events(tenant)]

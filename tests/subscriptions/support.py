"""Looking behind the API."""

from app.audit.models import AuditEvent
from app.subscriptions.models import Subscription
from app.tenants.models import Tenant
from tests import database


def plan_of(tenant: Tenant) -> str:
    return database.row(Tenant, id=tenant.id).plan_name


def stored(subscription: Subscription) -> Subscription:
    """The row as it is now."""
    return database.row(Subscription, tenant_id=subscription.tenant_id, id=subscription.id)


def audit_events(tenant: Tenant) -> list[AuditEvent]:
    return database.rows(AuditEvent, tenant_id=tenant.id)


def audit_actions(tenant: Tenant) -> list[str]:
    return [event.action for event in audit_events(tenant)]

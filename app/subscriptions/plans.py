"""The tenant's plan follows its current subscription."""

from __future__ import annotations

from uuid import UUID

from flask import current_app
from sqlalchemy import bindparam, select

from app.audit import service as audit
from app.core.actors import Actor
from app.core.db import statements
from app.subscriptions.models import Subscription
from app.subscriptions.statuses import StatusClass
from app.tenants.models import Tenant

DECIDING_FIELDS = frozenset({"plan_name", "bp_status", "start_date"})
"""The fields of a subscription that a tenant's plan depends on."""

LOCK_TENANT = statements.prepare(
    select(Tenant).where(Tenant.id == bindparam("tenant_id")).with_for_update(key_share=True)
)
CURRENT_PLAN = statements.prepare(
    select(Subscription.plan_name)
    .where(
        Subscription.tenant_id == bindparam("tenant_id"),
        Subscription.status_class != StatusClass.ENDED.value,
    )
    .order_by(Subscription.start_date.desc(), Subscription.id.desc())
    .limit(1)
)


def follow_plan(tenant_id: UUID, *, actor: Actor) -> bool:
    """Give the tenant the plan of its current subscription, or the default plan; whether it moved.

    Current is, of those not ended, the one with the latest start date, then the latest id. The
    tenant's row is locked before the subscriptions are read, so of two transactions that change two
    subscriptions of one tenant the second sees what the first did.
    """
    tenant = statements.scalar(LOCK_TENANT, {"tenant_id": tenant_id})
    current = statements.scalar(CURRENT_PLAN, {"tenant_id": tenant_id})
    plan_name = current or current_app.extensions["config"].default_plan
    change = tenant.assign({"plan_name": plan_name})
    if change is not None:
        audit.record("tenant.plan_changed", tenant, change, actor=actor)
    return change is not None


def reconcile(tenant_id: UUID, *, actor: Actor) -> int:
    """Class the tenant's subscriptions anew and let its plan follow; how many rows changed.

    For after the vocabulary of states or the default plan has changed.
    """
    of_tenant = select(Subscription).where(Subscription.tenant_id == tenant_id)
    changed = 0
    for subscription in statements.scalars(of_tenant.with_for_update()):
        values = Subscription.consequences({"bp_status": subscription.bp_status})
        changed += subscription.assign(values) is not None
    return changed + follow_plan(tenant_id, actor=actor)

"""The tenant's plan follows its current subscription."""

from __future__ import annotations

from uuid import UUID

from flask import current_app
from sqlalchemy import Uuid, bindparam, column, func, select

from app.audit import service as audit
from app.core.actors import Actor
from app.core.db.queries import update_row
from app.core.db.statements import Statement
from app.subscriptions.models import Subscription
from app.subscriptions.statuses import class_of
from app.tenants.models import Tenant

DECIDING_FIELDS = frozenset({"plan_name", "bp_status", "start_date"})
"""The tenant's plan depends on these fields of its subscriptions."""

LOCK_TENANT_PLAN = Statement(
    "tenants.lock_plan",
    select(
        func.lock_tenant_plan(bindparam("tenant_id")).table_valued(
            column("id", Uuid), "plan_name", "version", "current_plan_name"
        )
    ),
)
"""Lock the tenant; read its plan and the plan of its current subscription.

The current subscription has not ended and has the latest start date, then the latest id. The
function locks the tenant before it reads the subscriptions. So the second of two concurrent
changes sees the result of the first.
"""

LOCK_SUBSCRIPTIONS = Statement(
    "subscriptions.lock_of_tenant",
    select(Subscription).where(Subscription.tenant_id == bindparam("tenant_id")).with_for_update(),
)


def follow_plan(tenant_id: UUID, *, actor: Actor) -> bool:
    """Give the tenant the plan of its current subscription, or the default plan.

    Returns whether the plan changed.
    """
    tenant = LOCK_TENANT_PLAN.first(tenant_id=tenant_id)
    plan_name = tenant.current_plan_name or current_app.extensions["config"].default_plan
    tenant, change = update_row(Tenant, tenant, {"plan_name": plan_name})
    if change is not None:
        audit.record("tenant.plan_changed", tenant, change, actor=actor)
    return change is not None


def reconcile(tenant_id: UUID, *, actor: Actor) -> int:
    """Classify the tenant's subscriptions again, then set its plan; returns the changed rows.

    Use it after the vocabulary of states or the default plan has changed.
    """
    changed = 0
    for subscription in LOCK_SUBSCRIPTIONS.all(tenant_id=tenant_id):
        status_class = class_of(subscription.bp_status).value
        _, change = update_row(Subscription, subscription, {"status_class": status_class})
        changed += change is not None
    return changed + follow_plan(tenant_id, actor=actor)

"""The tenant's plan follows its current subscription."""

from __future__ import annotations

from uuid import UUID

from flask import current_app
from sqlalchemy import Text, Uuid, bindparam, column, func, select, update

from app.audit import service as audit
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db.models import Moment
from app.core.db.queries import Change, update_row
from app.core.db.statements import Statement
from app.subscriptions.models import Subscription
from app.subscriptions.statuses import class_of
from app.tenants.models import Tenant

DECIDING_FIELDS = frozenset({"plan_name", "bp_status", "start_date"})
"""The tenant's plan depends on these fields of its subscriptions."""

_locked = func.lock_tenant_plan(bindparam("of_tenant_id")).table_valued(
    column("id", Uuid), "plan_name", "version", "current_plan_name", name="locked"
)
_plan_name = func.coalesce(_locked.c.current_plan_name, bindparam("default_plan", type_=Text))
SET_TENANT_PLAN = Statement(
    "tenants.set_plan",
    update(Tenant.__table__)
    .where(Tenant.id == _locked.c.id, _locked.c.plan_name != _plan_name)
    .values(
        plan_name=_plan_name,
        version=_locked.c.version + 1,
        updated_at=bindparam("now", type_=Moment),
    )
    .returning(*Tenant.__table__.columns, _locked.c.plan_name.label("old_plan_name")),
)
"""Lock the tenant, and give it the plan of its current subscription where that differs.

The current subscription has not ended and has the latest start date, then the latest id. The
function locks the tenant before it reads the subscriptions. So the second of two concurrent
changes sees the result of the first. The statement compares with the function's values, because
its own snapshot of the tenant is older than the lock.
"""

LOCK_SUBSCRIPTIONS = Statement(
    "subscriptions.lock_of_tenant",
    select(Subscription).where(Subscription.tenant_id == bindparam("tenant_id")).with_for_update(),
)


def follow_plan(tenant_id: UUID, *, actor: Actor) -> bool:
    """Give the tenant the plan of its current subscription, or the default plan.

    Returns whether the plan changed.
    """
    tenant = SET_TENANT_PLAN.first(
        of_tenant_id=tenant_id,
        default_plan=current_app.extensions["config"].default_plan,
        now=utcnow(),
    )
    if tenant is None:
        return False
    change = Change({"plan_name": tenant.old_plan_name}, {"plan_name": tenant.plan_name})
    audit.record("tenant.plan_changed", tenant, change, actor=actor)
    return True


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

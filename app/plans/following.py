"""The tenant's plan follows its assigned plan or its current subscription.

The rules are ``migrations/functions/decide_plans.sql`` and ``follow_plan.sql``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, select

from app.audit import service as audit
from app.config import current_config
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db.queries import Change, update_row, update_where
from app.core.db.statements import Statement
from app.core.db.writes import Writes, writes
from app.core.json_text import Json
from app.plans.models import PlanPreset
from app.subscriptions.models import Subscription
from app.subscriptions.statuses import class_of, is_ended

DECIDING_FIELDS = frozenset({"plan_name", "bp_status", "status_class", "start_date"})
"""The tenant's plan depends on these fields of its subscriptions."""

MOMENTS = ("created_at", "updated_at", "expires_at")
FOLLOW_PLAN = Statement(
    "tenants.set_plan",
    "SELECT (f.tenant).*, f.old_plan_name, f.unknown_plans, f.carried"
    " FROM follow_plan(:tenant_id, :default_plan, :now) f",
)

LOCK_SUBSCRIPTIONS = Statement(
    "subscriptions.lock_of_tenant",
    select(Subscription)
    .where(Subscription.tenant_id == bindparam("tenant_id"), Subscription.bp_provider.is_(None))
    .with_for_update(),
)

# The tenants whose current subscription names this plan, and who have another plan, or will have
# after their assigned plan.
FIND_BEHIND = Statement(
    "subscriptions.find_behind",
    "WITH behind AS MATERIALIZED (SELECT s.tenant_id, s.id FROM subscriptions s"
    " JOIN tenants t ON t.id = s.tenant_id"
    " LEFT JOIN plan_assignments a ON a.tenant_id = s.tenant_id"
    " WHERE s.plan_name = :plan_name AND s.status_class <> 'ended'"
    " AND coalesce(a.next_plan_name, t.plan_name) <> :plan_name)"
    " SELECT b.tenant_id FROM behind b WHERE b.id = (SELECT c.id"
    " FROM current_subscriptions c WHERE c.tenant_id = b.tenant_id) LIMIT :limit",
    prepare=False,
)
FIND_NEW_PLANS = Statement(
    "plan_presets.find_new", select(PlanPreset.name).where(PlanPreset.has_new_name)
)


class Followed(NamedTuple):
    """The result of :func:`follow_plan`.

    ``unknown_plans`` are the plans without a preset that subscriptions name which have not ended.
    """

    is_changed: bool
    unknown_plans: frozenset[str] = frozenset()

    def has_plan(self, subscription: Subscription) -> bool:
        """Whether a preset has the plan of the subscription; true for an ended subscription."""
        return is_ended(subscription) or subscription.plan_name not in self.unknown_plans


def follow_plan(
    tenant_id: UUID, named: Sequence[Subscription] = (), *, actor: Actor, into: Writes | None = None
) -> Followed:
    """Give the tenant the plan that the database function ``decide_plans`` decides.

    ``named`` are subscriptions that have been given another plan, or have begun again: an audit row
    records each whose plan has no preset.
    """
    found = FOLLOW_PLAN.one(tenant_id=tenant_id, default_plan=default_plan(), now=utcnow())
    is_changed = found.id is not None
    followed = Followed(is_changed, frozenset(found.unknown_plans or ()))
    with writes(into) as w:
        if is_changed:
            change = Change({"plan_name": found.old_plan_name}, {"plan_name": found.plan_name})
            audit.record("tenant.plan_changed", found, change, actor=actor, into=w)
        for carried in found.carried or ():
            _record_carried(carried["override"], carried["before"], actor, into=w)
        for subscription in named:
            if not followed.has_plan(subscription):
                change = Change({}, {"plan_name": subscription.plan_name})
                audit.record("subscription.plan_unknown", subscription, change, actor=actor, into=w)
    return followed


def _record_carried(
    override: dict[str, Json], old_preset_id: str, actor: Actor, *, into: Writes
) -> None:
    """``override`` is the row after the change, as PostgreSQL has written it into JSON."""
    moments = {name: override[name] for name in MOMENTS if override[name] is not None}
    audit.add_event(
        "override.carried_over",
        target_id=override["id"],
        tenant_id=UUID(override["tenant_id"]),
        change=Change(
            {"plan_preset_id": old_preset_id}, {"plan_preset_id": override["plan_preset_id"]}
        ),
        actor=actor,
        data=override | {name: datetime.fromisoformat(one) for name, one in moments.items()},
        into=into,
    )


def reconcile(tenant_id: UUID, *, actor: Actor) -> int:
    """Classify the tenant's subscriptions again, then set its plan; returns the changed rows.

    Use it after the vocabulary of states or the default plan has changed. Subscriptions that a
    provider's events keep current have the provider's class.
    """
    changed = 0
    for subscription in LOCK_SUBSCRIPTIONS.all(tenant_id=tenant_id):
        status_class = class_of(subscription.bp_status).value
        row, change = update_row(Subscription, subscription, {"status_class": status_class})
        audit.record("subscription.updated", row, change, actor=actor)
        changed += change is not None
    return changed + follow_plan(tenant_id, actor=actor).is_changed


def find_behind(*, limit: int) -> Sequence[UUID]:
    """Tenants whose current subscription names a preset that got this name later.

    A preset without such tenants is not looked at again: :func:`follow_plan` finds it.
    """
    found: list[UUID] = []
    for plan_name in FIND_NEW_PLANS.scalars():
        behind = FIND_BEHIND.scalars(plan_name=plan_name, limit=limit - len(found))
        if not behind:
            update_where(PlanPreset, {"name": plan_name}, {"has_new_name": False})
        found += behind
        if len(found) == limit:
            break
    return found


def default_plan() -> str:
    """The plan of a tenant without an assigned plan and without a current subscription."""
    return current_config().default_plan

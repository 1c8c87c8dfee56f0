"""The decision of a tenant's plan. The rule is ``migrations/functions/decide_plans.sql``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import Text, Uuid, bindparam, column, exists, func, or_, select, true
from sqlalchemy.dialects.postgresql import array

from app.core.db.queries import visible_id
from app.core.db.statements import Statement
from app.core.errors import NotFound
from app.plans.following import default_plan
from app.plans.models import PLANS_IN_FORCE, PlanAssignment, PlanPreset
from app.subscriptions.models import Subscription
from app.subscriptions.statuses import StatusClass, is_ended

MAX_SUBSCRIPTIONS = 100
RECONCILE = "flask subscriptions reconcile"
PRECEDED = "The assigned plan takes precedence."
ASSIGNED = "The platform has assigned this plan, which takes precedence over every subscription."
KEPT = "The current subscription's plan has no preset, so the tenant keeps the plan it has."


class PlanSource(StrEnum):
    """What can decide a plan. ``kept``: the plan that the tenant had before an unknown plan."""

    ASSIGNMENT = "assignment"
    SUBSCRIPTION = "subscription"
    KEPT = "kept"
    DEFAULT = "default"


_plan = PLANS_IN_FORCE.c
_tenant_id = bindparam("tenant_id", type_=Uuid)
_default_plan = bindparam("default_plan", type_=Text)
_decided = func.decide_plans(array([_tenant_id]), _default_plan).table_valued(
    "source", "next_plan_name", column("subscription_id", Uuid)
)
FIND_CANDIDATES = Statement(
    "subscriptions.find_plan_candidates",
    select(
        _plan.tenant_id,
        _plan.plan_name,
        _decided.c.source,
        _decided.c.next_plan_name,
        PlanAssignment,
        Subscription,
        Subscription.id.is_not_distinct_from(_decided.c.subscription_id).label("is_current"),
        or_(
            Subscription.plan_name == _default_plan,
            exists().where(PlanPreset.name == Subscription.plan_name),
        ).label("is_known"),
    )
    .join_from(PLANS_IN_FORCE, _decided, true())
    .outerjoin(PlanAssignment, PlanAssignment.tenant_id == _plan.tenant_id)
    .outerjoin(Subscription, Subscription.tenant_id == _plan.tenant_id)
    .where(_plan.tenant_id == _tenant_id)
    .order_by(
        Subscription.status_class == StatusClass.ENDED.value,
        Subscription.start_date.desc(),
        Subscription.id.desc(),
    )
    .limit(MAX_SUBSCRIPTIONS),
)
"""The decision with the tenant's subscriptions: the current one first, those that ended last."""


@dataclass(frozen=True)
class Candidate:
    """One plan that the tenant could have; ``decides`` is true for one of them.

    ``until`` and ``reason`` are those of an assigned plan.
    """

    source: PlanSource
    plan_name: str
    decides: bool
    because: str
    subscription_id: UUID | None = None
    bp_subscription_id: str = ""
    bp_status: str = ""
    status_class: str = ""
    start_date: datetime | None = None
    until: datetime | None = None
    reason: str = ""


def explain(tenant_id: UUID | str) -> dict[str, object]:
    """Explain what decides the tenant's plan (see PlanDecisionSchema); raises NotFound.

    The candidates include :data:`MAX_SUBSCRIPTIONS` subscriptions at most.
    """
    rows = FIND_CANDIDATES.all(tenant_id=visible_id(tenant_id), default_plan=default_plan())
    if not rows:
        raise NotFound.of("tenant")
    plan_name = rows[0].plan_name
    candidates = list(_candidates(rows))
    decisive = next(candidate for candidate in candidates if candidate.decides)
    because = decisive.because
    if decisive.plan_name != plan_name:
        because += f" The tenant has another plan until {RECONCILE} is run."
    return {
        **asdict(decisive),
        "tenant_id": rows[0].tenant_id,
        "plan_name": plan_name,
        "because": because,
        "candidates": candidates,
    }


def _candidates(rows: Sequence[Any]) -> Iterator[Candidate]:
    source = PlanSource(rows[0].source)
    found = [row for row in rows if row.Subscription.id is not None]
    current = next((row for row in found if row.is_current), None)
    if source is PlanSource.ASSIGNMENT:
        given = rows[0].PlanAssignment
        details = {"until": given.until, "reason": given.reason}
        yield Candidate(source, given.plan_name, True, ASSIGNED, **details)
    yield from (_of(row, source) for row in found if not is_ended(row.Subscription))
    if current is not None and not current.is_known:
        decides = source is PlanSource.KEPT
        because = KEPT if decides else PRECEDED
        yield Candidate(PlanSource.KEPT, rows[0].next_plan_name, decides, because)
    yield _default(source, found)
    yield from (_of(row, source) for row in found if is_ended(row.Subscription))


def _of(row: Any, source: PlanSource) -> Candidate:
    subscription: Subscription = row.Subscription
    decides = row.is_current and source is PlanSource.SUBSCRIPTION
    if decides:
        because = "Of the subscriptions that have not ended, it has the latest start date and id."
    elif is_ended(subscription):
        because = "The subscription has ended."
    elif not row.is_known:
        because = "No preset has the name of this plan, so it has no effect."
    elif row.is_current:
        because = PRECEDED
    else:
        because = "A subscription with a later start date, or a later id, takes precedence."
    return Candidate(
        PlanSource.SUBSCRIPTION,
        subscription.plan_name,
        decides,
        because,
        subscription.id,
        subscription.bp_subscription_id,
        subscription.bp_status,
        subscription.status_class,
        subscription.start_date,
    )


def _default(source: PlanSource, subscriptions: Sequence[Any]) -> Candidate:
    if source is PlanSource.ASSIGNMENT:
        because = PRECEDED
    elif any(row.is_current for row in subscriptions):
        because = "A subscription takes precedence."
    elif subscriptions:
        because = "All subscriptions have ended."
    else:
        because = "The tenant has no subscription."
    return Candidate(PlanSource.DEFAULT, default_plan(), source is PlanSource.DEFAULT, because)

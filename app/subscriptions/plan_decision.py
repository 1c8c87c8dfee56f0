"""What decides a tenant's plan. The rule itself is the database function ``lock_tenant_plan``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from flask import current_app
from sqlalchemy import bindparam, select

from app.core.db.queries import visible_id
from app.core.db.statements import Statement
from app.core.errors import NotFound
from app.subscriptions.models import Subscription
from app.subscriptions.statuses import StatusClass, is_ended
from app.tenants.models import Tenant

MAX_SUBSCRIPTIONS = 100
RECONCILE = "flask subscriptions reconcile"
FIND_SUBSCRIPTIONS = Statement(
    "subscriptions.find_plan_candidates",
    select(Tenant, Subscription)
    .outerjoin(Subscription, Subscription.tenant_id == Tenant.id)
    .where(Tenant.id == bindparam("tenant_id"))
    .order_by(
        Subscription.status_class == StatusClass.ENDED.value,
        Subscription.start_date.desc(),
        Subscription.id.desc(),
    )
    .limit(MAX_SUBSCRIPTIONS),
)
"""The tenant with its subscriptions: those that have not ended first, then the latest first."""


class PlanSource(StrEnum):
    """What can decide a plan."""

    SUBSCRIPTION = "subscription"
    DEFAULT = "default"


@dataclass(frozen=True)
class Candidate:
    """One plan that the tenant could have; ``decides`` is true for one of them."""

    source: PlanSource
    plan_name: str
    decides: bool
    because: str
    subscription_id: UUID | None = None
    bp_subscription_id: str = ""
    bp_status: str = ""
    status_class: str = ""
    start_date: datetime | None = None


@dataclass(frozen=True)
class PlanDecision:
    """The plan that a tenant has, what decides it, and all candidates, in order of precedence."""

    tenant_id: UUID
    plan_name: str
    source: PlanSource
    subscription_id: UUID | None
    because: str
    candidates: list[Candidate]


def explain(tenant_id: UUID | str) -> PlanDecision:
    """What decides the tenant's plan; raises NotFound.

    The candidates include :data:`MAX_SUBSCRIPTIONS` subscriptions at most.
    """
    rows = FIND_SUBSCRIPTIONS.all(tenant_id=visible_id(tenant_id))
    if not rows:
        raise NotFound
    tenant = rows[0].Tenant
    found = [row.Subscription for row in rows if row.Subscription.id is not None]
    living = [_of(one, is_first=not n) for n, one in enumerate(found) if not is_ended(one)]
    ended = [_of(one) for one in found if is_ended(one)]
    candidates = [*living, _default(decides=not living), *ended]
    decisive = next(candidate for candidate in candidates if candidate.decides)
    because = decisive.because
    if decisive.plan_name != tenant.plan_name:
        because += f" The tenant has another plan until {RECONCILE} is run."
    return PlanDecision(
        tenant_id=tenant.id,
        plan_name=tenant.plan_name,
        source=decisive.source,
        subscription_id=decisive.subscription_id,
        because=because,
        candidates=candidates,
    )


def _of(subscription: Subscription, *, is_first: bool = False) -> Candidate:
    if is_ended(subscription):
        because = "The subscription has ended."
    elif is_first:
        because = "Of the subscriptions that have not ended, it has the latest start date and id."
    else:
        because = "A subscription with a later start date, or a later id, takes precedence."
    return Candidate(
        PlanSource.SUBSCRIPTION,
        subscription.plan_name,
        is_first,
        because,
        subscription.id,
        subscription.bp_subscription_id,
        subscription.bp_status,
        subscription.status_class,
        subscription.start_date,
    )


def _default(*, decides: bool) -> Candidate:
    because = (
        "No subscription is left that has not ended."
        if decides
        else "A subscription takes precedence."
    )
    plan_name = current_app.extensions["config"].default_plan
    return Candidate(PlanSource.DEFAULT, plan_name, decides, because)

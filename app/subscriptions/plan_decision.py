"""What decides a tenant's plan. The rule itself is the database function ``follow_plan``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, exists, func, or_, select

from app.core.db.queries import visible_id
from app.core.db.statements import Statement
from app.core.errors import NotFound
from app.flags.models import PlanPreset
from app.subscriptions.models import PlanAssignment, Subscription
from app.subscriptions.plans import default_plan
from app.subscriptions.statuses import StatusClass, is_ended
from app.tenants.models import Tenant

MAX_SUBSCRIPTIONS = 100
RECONCILE = "flask subscriptions reconcile"

_has_ended = func.coalesce(PlanAssignment.until <= func.now(), False)
_is_known = or_(
    Subscription.plan_name == bindparam("default_plan"),
    exists().where(PlanPreset.name == Subscription.plan_name),
)
FIND_SUBSCRIPTIONS = Statement(
    "subscriptions.find_plan_candidates",
    select(
        Tenant,
        Subscription,
        _is_known.label("is_known"),
        PlanAssignment,
        _has_ended.label("has_ended"),
    )
    .outerjoin(Subscription, Subscription.tenant_id == Tenant.id)
    .outerjoin(PlanAssignment, PlanAssignment.tenant_id == Tenant.id)
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
    """What can decide a plan. ``kept``: the plan that the tenant had before an unknown one."""

    ASSIGNMENT = "assignment"
    SUBSCRIPTION = "subscription"
    KEPT = "kept"
    DEFAULT = "default"


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


@dataclass(frozen=True)
class PlanDecision:
    """The plan that a tenant has, what decides it, and all candidates, in order of precedence."""

    tenant_id: UUID
    plan_name: str
    source: PlanSource
    subscription_id: UUID | None
    until: datetime | None
    because: str
    candidates: list[Candidate]


def explain(tenant_id: UUID | str) -> PlanDecision:
    """What decides the tenant's plan; raises NotFound.

    The candidates include :data:`MAX_SUBSCRIPTIONS` subscriptions at most.
    """
    rows = FIND_SUBSCRIPTIONS.all(tenant_id=visible_id(tenant_id), default_plan=default_plan())
    if not rows:
        raise NotFound
    tenant, assignment = rows[0].Tenant, rows[0].PlanAssignment
    plan_name = assignment.next_plan_name if rows[0].has_ended else tenant.plan_name
    candidates = list(_candidates(rows, plan_name))
    decisive = next(candidate for candidate in candidates if candidate.decides)
    because = decisive.because
    if decisive.plan_name != plan_name:
        because += f" The tenant has another plan until {RECONCILE} is run."
    return PlanDecision(
        tenant_id=tenant.id,
        plan_name=plan_name,
        source=decisive.source,
        subscription_id=decisive.subscription_id,
        until=decisive.until,
        because=because,
        candidates=candidates,
    )


def _candidates(rows: Sequence[Any], plan_name: str) -> Iterator[Candidate]:
    assignment = rows[0].PlanAssignment
    is_assigned = assignment.tenant_id is not None and not rows[0].has_ended
    if is_assigned:
        yield _assigned(assignment)
    found = [row for row in rows if row.Subscription.id is not None]
    living = [row for row in found if not is_ended(row.Subscription)]
    is_known = bool(living) and living[0].is_known
    for place, row in enumerate(living):
        yield _of(row.Subscription, *_of_living(place, row.is_known, is_assigned=is_assigned))
    if living and not is_known:
        kept = assignment.next_plan_name if is_assigned else plan_name
        yield _kept(kept, is_assigned=is_assigned)
    yield _default(is_assigned=is_assigned, is_subscribed=bool(living))
    for row in found:
        if is_ended(row.Subscription):
            yield _of(row.Subscription, False, "The subscription has ended.")


def _assigned(assignment: PlanAssignment) -> Candidate:
    return Candidate(
        PlanSource.ASSIGNMENT,
        assignment.plan_name,
        True,
        "The platform has assigned this plan, which takes precedence over every subscription.",
        until=assignment.until,
        reason=assignment.reason,
    )


def _of_living(place: int, is_known: bool, *, is_assigned: bool) -> tuple[bool, str]:
    """Whether a subscription that has not ended decides the plan, and why."""
    if not is_known:
        return False, "No preset has the name of this plan, so it has no effect."
    if place:
        return False, "A subscription with a later start date, or a later id, takes precedence."
    if is_assigned:
        return False, "The assigned plan takes precedence."
    return True, "Of the subscriptions that have not ended, it has the latest start date and id."


def _of(subscription: Subscription, decides: bool, because: str) -> Candidate:
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


def _kept(plan_name: str, *, is_assigned: bool) -> Candidate:
    because = (
        "The assigned plan takes precedence."
        if is_assigned
        else "The current subscription's plan has no preset, so the tenant keeps the plan it has."
    )
    return Candidate(PlanSource.KEPT, plan_name, not is_assigned, because)


def _default(*, is_assigned: bool, is_subscribed: bool) -> Candidate:
    if is_assigned:
        because = "The assigned plan takes precedence."
    elif is_subscribed:
        because = "A subscription takes precedence."
    else:
        because = "No subscription is left that has not ended."
    return Candidate(
        PlanSource.DEFAULT, default_plan(), not (is_assigned or is_subscribed), because
    )

"""Plans without a preset, and trials that no job has ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from prometheus_client.core import GaugeMetricFamily, Metric

from app.config import current_config
from app.core.db.statements import Statement
from app.core.health import Finding, shortened
from app.plans.following import default_plan
from app.plans.presets import find_preset

# The plans of subscriptions are found by one search in the index each.
FIND_UNKNOWN_PLANS = Statement(
    "plan_presets.find_unknown",
    "WITH RECURSIVE named AS ("
    "(SELECT min(plan_name) AS plan_name FROM subscriptions WHERE status_class <> 'ended')"
    " UNION ALL SELECT (SELECT min(s.plan_name) FROM subscriptions s"
    " WHERE s.status_class <> 'ended' AND s.plan_name > named.plan_name)"
    " FROM named WHERE named.plan_name IS NOT NULL)"
    " SELECT plan_name FROM (TABLE named UNION SELECT plan_name FROM tenants) AS every"
    " WHERE plan_name <> :default_plan"
    " AND NOT EXISTS (SELECT FROM plan_presets p WHERE p.name = every.plan_name)",
)
COUNT_TENANTS = Statement(
    "tenants.count_by_plan",
    "SELECT plan_name, count(*) AS tenants FROM ("
    "SELECT id, plan_name FROM tenants WHERE plan_name = ANY (CAST(:names AS text[]))"
    " UNION SELECT tenant_id, plan_name FROM subscriptions"
    " WHERE plan_name = ANY (CAST(:names AS text[])) AND status_class <> 'ended') AS every"
    " GROUP BY plan_name ORDER BY tenants DESC, plan_name",
    prepare=False,
)
OVERDUE_TRIALS = Statement(
    "plan_assignments.count_overdue",
    # A job ends them within a minute.
    "SELECT count(*) FROM plan_assignments WHERE until < now() - interval '1 minute'",
)


def check_plans() -> Finding:
    """Hint at the plans without a preset that tenants have or subscriptions name."""
    plans, default = _unknown_plans(), default_plan()
    trial = current_config().new_tenant_plan
    if trial is not None and find_preset(trial[0]) is None:
        fix = "New tenants start without a trial. Create the preset, or correct the setting."
        return Finding("plans", False, f"no preset is named {trial[0]} (NEW_TENANT_PLAN)", fix)
    if not plans and find_preset(default) is None:
        fix = "Tenants whose trial or subscription ends have no flags. Create the preset."
        return Finding("plans", True, f"no preset is named {default} (DEFAULT_PLAN)", fix)
    if not plans:
        return Finding("plans", True, "each has a preset")
    listed = shortened([f"{plan.plan_name} ({plan.tenants})" for plan in plans], ", ")
    fix = "These plans have no preset. Create it, or correct the subscriptions' plan_name."
    return Finding("plans", True, f"without a preset (tenants): {listed}", fix)


def check_trials() -> Finding:
    """Check that trials are ended when they are over."""
    overdue = OVERDUE_TRIALS.scalar()
    if not overdue:
        return Finding("trials", True, "each that is over has been ended")
    fix = "Run flask jobs background and flask jobs worker; they end the trials that are over."
    return Finding("trials", False, f"{overdue} over, but not ended", fix)


def metrics() -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "tenants_on_unknown_plan",
        "Tenants that have, or whose living subscription names, a plan without a preset; DEFAULT_PLAN"
        " does not count.",
        sum(plan.tenants for plan in _unknown_plans()),
    )
    yield GaugeMetricFamily(
        "trials_overdue",
        "Assigned plans that ended more than a minute ago and that no job has ended.",
        OVERDUE_TRIALS.scalar(),
    )


def _unknown_plans() -> Sequence[Any]:
    """``plan_name`` and number of ``tenants`` for each plan without a preset, most tenants first.

    A tenant counts if it has the plan, or a subscription that names it and has not ended. The
    default plan needs no preset.
    """
    names = FIND_UNKNOWN_PLANS.scalars(default_plan=default_plan())
    return COUNT_TENANTS.all(names=names) if names else []


ENDING = (
    "SELECT FROM plan_assignments WHERE until > now() AND until < now() + interval '{days} days'"
)
WORK = {"trials_ending": (ENDING, "/v1/tenants?plan_ends_before={soon}&include=assigned_until")}
CHECKS = {"plans": check_plans, "trials": check_trials}

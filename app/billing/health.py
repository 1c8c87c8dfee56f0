"""Checks and metrics of the billing providers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from prometheus_client.core import Metric
from sqlalchemy import select

from app.billing.models import BillingComparison
from app.billing.providers import PROVIDERS
from app.billing.providers.provider import BillingProvider
from app.config import Config, current_config
from app.core.clock import utcnow
from app.core.db.statements import Statement
from app.core.health import Finding, gauge
from app.core.observability.metrics import SharedMetric
from app.inbox.providers import RECEIVERS

DRIFT = SharedMetric(
    "billing_drift_total",
    "Differences from the billing provider that a comparison has repaired.",
    ["provider", "kind"],
)
WAITING = Statement(
    "webhook_events.waiting_tenant",
    "SELECT source, count(*) AS events, min(created_at) AS oldest FROM webhook_events"
    " WHERE status = 'waiting_tenant' GROUP BY source ORDER BY source",
    prepare=False,
)
LIST_COMPARISONS = Statement("billing_comparisons.list", select(BillingComparison))
# One SELECT per provider, so that each reads one row of the partial index.
LAST_EVENTS = Statement(
    "webhook_events.last_of_billing",
    " UNION ALL ".join(
        f"SELECT '{name}' AS source, (SELECT max(created_at) FROM webhook_events"  # noqa: S608
        f" WHERE source = '{name}') AS at"
        for name in PROVIDERS
    ),
)


def has_receiver(provider: BillingProvider, config: Config) -> bool:
    return bool(getattr(config, RECEIVERS[provider.name].setting))


def has_api_key(provider: BillingProvider, config: Config) -> bool:
    return bool(getattr(config, RECEIVERS[provider.name].api_key))


def comparisons() -> dict[str, BillingComparison]:
    """The last comparison with each provider."""
    return {one.provider: one for one in LIST_COMPARISONS.all()}


def check_waiting() -> Finding:
    """Hint at events whose tenant is not known."""
    found = WAITING.all()
    if not found:
        return Finding("billing events", True, "none waits for its tenant")
    listed = "; ".join(f"{one.source}: {one.events} since {one.oldest:%F %R}" for one in found)
    fix = (
        "See GET /v1/billing/customers/waiting. Set metadata.tenant_id at the provider,"
        " or PUT /v1/billing/customers/{provider}/{customer_id}."
    )
    return Finding("billing events", True, f"wait for their tenants: {listed}", fix)


def check_drift() -> Finding:
    """Hint at repairs by the comparisons, and at what prevents comparisons."""
    config, known = current_config(), comparisons()
    longest = timedelta(hours=2 * config.billing_reconcile_hours)
    faults, told = list[str](), list[str]()
    for name, provider in PROVIDERS.items():
        one = known.get(name)
        if not has_api_key(provider, config):
            if has_receiver(provider, config) and not provider.has_trusted_payloads:
                key = RECEIVERS[name].api_key.upper()
                faults.append(f"{provider.title} signs nothing: without {key} no event is applied")
        elif one is not None:
            last = one.finished_at or one.created_at
            if one.error:
                faults.append(one.error)
            if longest and utcnow() - last > longest:
                faults.append(f"the last comparison with {provider.title} ended {last:%F %R}")
            if one.counts.get("repaired"):
                told.append(f"{name}: {_repaired(one)}")
    if faults:
        fix = "See docs/guides/billing-providers.md, and `flask billing connect PROVIDER`."
        return Finding("drift", False, "; ".join((*faults, *told)), fix)
    fix = "Events were lost: see what their provider could not deliver." if told else ""
    return Finding("drift", True, "; ".join(told) or "nothing to repair", fix)


def _repaired(one: BillingComparison) -> str:
    # KINDS of app.billing.mirror, which builds on this module's neighbours
    others = ("compared", "repaired", "created", "waiting", "missing")
    kinds = [f"{kind} {count}" for kind, count in one.counts.items() if kind not in others]
    return f"{one.counts['repaired']} repaired ({', '.join(kinds)}) since {one.started_at:%F %R}"


def metrics() -> Iterator[Metric]:
    events: dict[str, Any] = {one.source: one.at for one in LAST_EVENTS.all() if one.at}
    ends = {name: one.finished_at for name, one in comparisons().items() if one.finished_at}
    for name, documentation, moments in (
        ("billing_last_event_seconds", "When a billing provider's last event came.", events),
        ("billing_last_comparison_seconds", "When a comparison was last complete.", ends),
    ):
        times = {provider: at.timestamp() for provider, at in moments.items()}
        yield gauge(name, documentation, "provider", times)
    waiting = {one.source: one.events for one in WAITING.all()}
    yield gauge("billing_waiting_events", "Events that wait for a tenant.", "provider", waiting)


WORK = {
    "waiting_billing": (
        "SELECT FROM webhook_events WHERE status = 'waiting_tenant'",
        "/v1/billing/customers/waiting",
    )
}
CHECKS = {"billing events": check_waiting, "drift": check_drift}

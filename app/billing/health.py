"""The events of billing providers that wait for a tenant."""

from __future__ import annotations

from app.core.db.statements import Statement
from app.core.health import Finding

WAITING = Statement(
    "webhook_events.waiting_tenant",
    "SELECT source, count(*) AS events, min(created_at) AS oldest FROM webhook_events"
    " WHERE status = 'waiting_tenant' GROUP BY source ORDER BY source",
    prepare=False,
)


def check_waiting() -> Finding:
    """Hint at events whose tenant is not known."""
    found = WAITING.all()
    if not found:
        return Finding("billing events", True, "none waits for its tenant")
    listed = "; ".join(f"{one.source}: {one.events} since {one.oldest:%F %R}" for one in found)
    fix = (
        "See GET /v1/webhooks/events?status=waiting_tenant. Set metadata.tenant_id at the provider,"
        " or PUT /v1/billing/customers/{provider}/{customer_id}."
    )
    return Finding("billing events", True, f"wait for their tenants: {listed}", fix)


CHECKS = {"billing events": check_waiting}

"""Waiting deliveries, and the endpoints that fail."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from app.core.db.statements import Statement
from app.core.health import LONGEST_LAG, SHOWN, Finding, gauge, shortened

LARGEST_LAG = 10_000  # events without deliveries

# Unfinished deliveries by what their endpoints are: failing since the last success, paused (not
# active, or of a suspended tenant), or healthy. Seconds since the oldest of them was due. Of each
# endpoint at most 100,000 are counted.
BACKLOG = Statement(
    "webhook_deliveries.backlog",
    "SELECT CASE WHEN p.id IS NULL OR NOT p.is_active OR NOT coalesce(t.is_active, true)"
    "    THEN 'paused' WHEN s.failing_since IS NULL THEN 'healthy' ELSE 'failing' END AS class,"
    "  sum(d.waiting)::bigint AS waiting,"
    "  greatest(0, extract(epoch FROM now() - min(d.oldest)))::float AS seconds"
    " FROM queued_webhook_endpoints() q"
    " LEFT JOIN webhook_endpoints p ON p.tenant_id = q.tenant_id AND p.id = q.endpoint_id"
    " LEFT JOIN webhook_endpoint_states s ON s.tenant_id = p.tenant_id AND s.endpoint_id = p.id"
    " LEFT JOIN tenants t ON t.id = q.tenant_id"
    " CROSS JOIN LATERAL (SELECT count(*) AS waiting, min(next_attempt_at) AS oldest"
    "   FROM (SELECT next_attempt_at FROM webhook_deliveries d"
    "     WHERE d.tenant_id = q.tenant_id AND d.endpoint_id = q.endpoint_id"
    "       AND d.next_attempt_at IS NOT NULL"
    "     ORDER BY d.next_attempt_at LIMIT 100000) AS first) d"
    " GROUP BY class",
    prepare=False,
)
# The endpoints of the backlog's class `failing`, those that have failed longest first. `slug` is the
# tenant's; None: the platform's.
LIST_FAILING = Statement(
    "webhook_endpoints.list_failing",
    "SELECT p.id, t.slug, s.failing_since FROM queued_webhook_endpoints() q"
    " JOIN webhook_endpoints p ON p.tenant_id = q.tenant_id AND p.id = q.endpoint_id"
    " JOIN webhook_endpoint_states s ON s.tenant_id = p.tenant_id AND s.endpoint_id = p.id"
    " LEFT JOIN tenants t ON t.id = q.tenant_id"
    " WHERE s.failing_since IS NOT NULL AND p.is_active AND coalesce(t.is_active, true)"
    " ORDER BY s.failing_since, p.id LIMIT :limit",
    prepare=False,
)
# How many events have positions and no deliveries yet; no row where there are no endpoints.
LAG = Statement(
    "webhook_feed.lag",
    "SELECT greatest(0, e.last_position - coalesce(f.position, e.removed_position))"
    " FROM event_feed e LEFT JOIN webhook_feed f ON true"
    " WHERE EXISTS (SELECT FROM webhook_endpoints)",
)


def check_sender() -> Finding:
    """Check that deliveries are made when they are due."""
    waiting, seconds = _backlog()["healthy"]
    lag = LAG.scalar() or 0
    if seconds > LONGEST_LAG or lag > LARGEST_LAG:
        found = f"{lag} events and {waiting} deliveries wait, up to {seconds:.0f} s"
        return Finding("sender", False, found, "Run flask jobs background.")
    return Finding("sender", True, f"{waiting} deliveries wait")


def check_endpoints() -> Finding:
    """Hint at the webhook endpoints that fail while deliveries to them wait."""
    failing = LIST_FAILING.all(limit=SHOWN + 1)
    if not failing:
        return Finding("webhook endpoints", True, "none is failing")
    listed = shortened(
        [f"{one.slug or 'platform'}: {one.id} since {one.failing_since:%F %R}" for one in failing],
        "; ",
    )
    fix = (
        "flask webhook-endpoints deliveries ENDPOINT_ID shows what these receivers answer. Tell"
        " their owners. An endpoint that fails for 120 hours is disabled."
    )
    return Finding("webhook endpoints", True, f"failing: {listed}", fix)


def metrics() -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "webhook_events_waiting", "Events that have no deliveries yet.", LAG.scalar() or 0
    )
    found = _backlog()
    counts = {name: count for name, (count, _) in found.items()}
    ages = {name: seconds for name, (_, seconds) in found.items()}
    yield gauge("webhook_deliveries_waiting", "Unfinished deliveries.", "endpoints", counts)
    overdue = "Seconds since the oldest unfinished delivery was due."
    yield gauge("webhook_deliveries_overdue_seconds", overdue, "endpoints", ages)


def _backlog() -> dict[str, tuple[int, float]]:
    """By class of endpoints: unfinished deliveries, and seconds since the oldest was due."""
    found = {row[0]: (row.waiting, row.seconds) for row in BACKLOG.all()}
    return {name: found.get(name, (0, 0.0)) for name in ("healthy", "failing", "paused")}


FAILED = (
    "SELECT FROM webhook_deliveries WHERE status = 'failed'"
    " AND created_at > now() - interval '{days} days'"
)
FAILING = (
    "SELECT FROM webhook_endpoint_states s JOIN webhook_endpoints p USING (tenant_id)"
    " WHERE p.id = s.endpoint_id AND s.failing_since IS NOT NULL AND p.is_active"
)
WORK = {
    "failing_endpoints": (FAILING, "/v1/webhook-endpoints?is_failing=true&include=failing_since"),
    "failed_deliveries": (FAILED, "/v1/webhook-deliveries/failed?created_after={since}"),
}
CHECKS = {"sender": check_sender, "webhook endpoints": check_endpoints}

"""The events in the inbox that are not processed."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from app.core.db.statements import Statement
from app.core.health import gauge

# Of the states that want attention; one without events is absent. One SELECT per state, so that each
# reads only the partial index of its state.
DEPTH = Statement(
    "webhook_events.depth",
    " UNION ALL ".join(
        "SELECT status, count(*) AS events,"  # noqa: S608
        " extract(epoch FROM now() - min(created_at))::float AS oldest_seconds "
        f"FROM webhook_events WHERE status = '{state}' GROUP BY status"
        for state in ("pending", "waiting_tenant", "failed")
    ),
)


def metrics() -> Iterator[Metric]:
    found = DEPTH.all()
    counts = {row.status: row.events for row in found}
    ages = {row.status: row.oldest_seconds for row in found}
    yield gauge("inbox_events", "Events in the inbox.", "state", counts)
    yield gauge("inbox_oldest_seconds", "Age of the oldest event of a state.", "state", ages)


FAILED = "SELECT FROM webhook_events WHERE status = 'failed'"
WORK = {"failed_webhooks": (FAILED, "/v1/webhooks/events?status=failed")}

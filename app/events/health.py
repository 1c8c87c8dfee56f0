"""Events that wait for a position."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from app.core.db.statements import Statement
from app.core.health import LONGEST_LAG, Finding

# How many events have positions, how many wait for a position, and seconds that the oldest waits.
# At most 100,000 are counted.
BACKLOG = Statement(
    "event_outbox.backlog",
    "SELECT coalesce((SELECT last_position FROM event_feed), 0) AS sequenced, count(*) AS waiting,"
    " greatest(0, extract(epoch FROM now() - min(created_at)))::float AS seconds"
    " FROM (SELECT created_at FROM event_outbox ORDER BY number LIMIT 100000) AS oldest",
)


def check_sequencer() -> Finding:
    """Check that events get their positions soon."""
    _, waiting, seconds = BACKLOG.one()
    if seconds < LONGEST_LAG:
        return Finding("sequencer", True, f"{waiting} events wait for a position")
    fix = "Run flask jobs background. Until then the event feed shows nothing new."
    return Finding("sequencer", False, f"{waiting} events wait, up to {seconds:.0f} s", fix)


def metrics() -> Iterator[Metric]:
    sequenced, waiting, seconds = BACKLOG.one()
    yield CounterMetricFamily("events_sequenced", "Events that have got a position.", sequenced)
    yield GaugeMetricFamily("events_waiting", "Events that have no position yet.", waiting)
    yield GaugeMetricFamily(
        "events_waiting_seconds", "Age of the oldest event without a position.", seconds
    )


CHECKS = {"sequencer": check_sequencer}

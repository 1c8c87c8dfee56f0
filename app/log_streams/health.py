"""How far log streams are behind, and those that need somebody."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from app.core.db.statements import Statement
from app.core.health import LONGEST_LAG, SHOWN, Finding, gauge, shortened
from app.log_streams.models import RUNNING, LogStreamState

JOINED = (
    " FROM log_streams s JOIN log_stream_progress p ON p.tenant_id = s.tenant_id"
    " AND p.stream_id = s.id LEFT JOIN tenants t ON t.id = s.tenant_id"
)
# By state: how many streams, since when the slowest lacks events, and for how long one is due. The
# streams of a suspended tenant wait.
STATES = Statement(
    "log_streams.count_states",
    "SELECT s.state, count(*) AS streams,"  # noqa: S608 - of constants
    " extract(epoch FROM now() - min(p.written_until))::float AS lag,"
    " extract(epoch FROM now() - min(p.next_attempt_at))::float AS overdue"
    f"{JOINED} WHERE coalesce(t.is_active, true) GROUP BY s.state",
)
LIST_TROUBLED = Statement(
    "log_streams.list_troubled",
    "SELECT coalesce(t.slug, 'platform') AS owner, s.id,"
    " CASE WHEN p.warned_at IS NULL THEN s.state ELSE 'behind' END AS trouble"
    f"{JOINED} WHERE s.state IN ('error', 'invalid') OR p.warned_at IS NOT NULL"
    " ORDER BY s.id LIMIT :limit",
)


def check_log_streams() -> Finding:
    """Check that due streams are written; hint at those that fail or lack events soon removed."""
    overdue = max((one.overdue or 0 for one in STATES.all()), default=0)
    if overdue > LONGEST_LAG:
        found = f"one is due for {overdue:.0f} s"
        return Finding("log streams", False, found, "Run flask jobs background.")
    troubled = LIST_TROUBLED.all(limit=SHOWN + 1)
    if not troubled:
        return Finding("log streams", True, "none is failing")
    listed = shortened([f"{one.owner}: {one.id} is {one.trouble}" for one in troubled], "; ")
    fix = (
        "flask log-streams show STREAM_ID shows why. Tell their owners. What a stream lacks is"
        " removed LOG_STREAM_DAYS after it is `behind`."
    )
    return Finding("log streams", True, listed, fix)


def metrics() -> Iterator[Metric]:
    found = STATES.all()
    counts = dict.fromkeys(LogStreamState, 0) | {one.state: one.streams for one in found}
    yield gauge("log_stream_states", "Log streams.", "state", counts)
    lag = max((one.lag for one in found if one.state in RUNNING), default=0.0)
    text = "Seconds since the slowest running log stream has written all events."
    yield GaugeMetricFamily("log_stream_lag_seconds", text, max(lag, 0.0))


CHECKS = {"log streams": check_log_streams}
FAILING = "SELECT FROM log_streams WHERE state = 'error'"
INVALID = "SELECT FROM log_streams WHERE state = 'invalid'"
WORK = {
    "failing_log_streams": (FAILING, "/v1/log-streams?state=error"),
    "invalid_log_streams": (INVALID, "/v1/log-streams?state=invalid"),
}

"""Metrics of requests and jobs.

prometheus_client counts requests. With ``PROMETHEUS_MULTIPROC_DIR``, which ``gunicorn.conf.py``
sets, the counts of all web processes are added up. Each job runs in a process of its own, so the
counts of jobs are in Redis.
"""

from __future__ import annotations

from functools import cache

from prometheus_client import Counter, Histogram

from app.core.observability.shared_metrics import SharedMetric

REQUESTS = Counter("http_requests_total", "Requests answered.", ["method", "route", "status"])
DURATION = Histogram(
    "http_request_duration_seconds",
    "Time from a request's arrival at the application to its answer.",
    ["method", "route"],
    buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
READS = Counter(
    "database_reads_total",
    "Requests that may read from a replica, by the server that answered.",
    ["target"],
)
JOB_RESULTS = SharedMetric("jobs_total", "Jobs that have ended.", ["job", "result"])
METHODS = {"GET", "HEAD", "OPTIONS", "POST", "PATCH", "PUT", "DELETE"}


def count_request(method: str, route: str, status: int, seconds: float) -> None:
    """Count a request. ``route`` must be the URL rule: paths would make too many time series."""
    count, duration = _of_request(method, route, status)
    count.inc()
    duration.observe(seconds)


@cache
def _of_request(method: str, route: str, status: int) -> tuple[Counter, Histogram]:
    return REQUESTS.labels(method, route, status), DURATION.labels(method, route)

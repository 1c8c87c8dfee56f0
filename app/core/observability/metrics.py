"""Counts requests and jobs in each process, for :mod:`app.operations.metrics`.

prometheus_client counts requests. With ``PROMETHEUS_MULTIPROC_DIR``, which ``gunicorn.conf.py``
sets, the counts of all web processes are added up. Processes that do not serve ``/metrics``, such as
those of jobs, have their counts in Redis (:class:`SharedMetric`).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import ClassVar, cast

from prometheus_client import Counter, Gauge, Histogram
from redis import Redis
from redis.exceptions import RedisError

from app.core.jobs.queues import connection

log = logging.getLogger(__name__)

METHODS = {"GET", "HEAD", "OPTIONS", "POST", "PATCH", "PUT", "DELETE"}

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


def count_request(method: str, route: str, status: int, seconds: float) -> None:
    """Count a request. ``route`` must be the URL rule: paths would make too many time series."""
    count, duration = _of_request(method, route, status)
    count.inc()
    duration.observe(seconds)


@cache
def _of_request(method: str, route: str, status: int) -> tuple[Counter, Histogram]:
    return REQUESTS.labels(method, route, status), DURATION.labels(method, route)


class SharedMetric:
    """One metric. Its values are in a Redis hash, and start at zero again if Redis loses its data.

    The name of a field is the values of ``labels``, separated by spaces. A field in ``zeros`` is 0
    until a value is stored. Define a metric in a module that web processes import.
    """

    all: ClassVar[list[SharedMetric]] = []

    def __init__(
        self, name: str, documentation: str, labels: Sequence[str], *, zeros: Collection[str] = ()
    ) -> None:
        self.key = f"metrics:{name}"
        self._zeros = dict.fromkeys(zeros, 0.0)
        # Each web process shows the value that any of them set last, also without Redis.
        self._gauge = Gauge(name, documentation, labels, multiprocess_mode="mostrecent")
        self.all.append(self)

    def add(self, counts: Mapping[str, int]) -> None:
        """Add to the values of these fields. While Redis is unavailable, the counts are lost."""
        with self._storing() as redis, redis.pipeline(transaction=False) as pipeline:
            for field, count in counts.items():
                pipeline.hincrby(self.key, field, count)
            pipeline.execute()

    def put(self, values: Mapping[str, float]) -> None:
        """Store the values of these fields. While Redis is unavailable, the values are lost."""
        with self._storing() as redis:
            for field, value in values.items():
                redis.hset(self.key, field, value)

    def read(self) -> dict[str, float]:
        """The value of each field. Raises RedisError."""
        stored = cast("dict[bytes, bytes]", connection().hgetall(self.key))
        return self._zeros | {field.decode(): float(value) for field, value in stored.items()}

    def show(self) -> None:
        """Copy the values from Redis to the gauge that ``/metrics`` shows. Raises RedisError."""
        for field, value in self.read().items():
            self._gauge.labels(*field.split()).set(value)

    @contextmanager
    def _storing(self) -> Iterator[Redis]:
        try:
            yield connection()
        except RedisError as fault:
            fields = {"metric": self.key, "reason": type(fault).__name__}
            log.warning("metric_not_stored", extra=fields)


JOB_RESULTS = SharedMetric("jobs_total", "Jobs that have ended.", ["job", "result"])

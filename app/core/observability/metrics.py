"""Metrics: requests by route and status, their duration, pool connections, results of jobs.

Requests are counted by prometheus_client, correct under several gunicorn workers when
``PROMETHEUS_MULTIPROC_DIR`` is set (``gunicorn.conf.py`` sets it). Each job runs in a process of
its own, so their results are counted in a Redis hash instead.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import Any, cast

from flask import request
from prometheus_client import Counter, Gauge, Histogram
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy import event
from sqlalchemy.pool import ConnectionPoolEntry, Pool

log = logging.getLogger(__name__)

REQUESTS = Counter("http_requests_total", "Requests answered.", ["method", "route", "status"])
DURATION = Histogram(
    "http_request_duration_seconds",
    "Time from a request's arrival at the application to its answer.",
    ["method", "route"],
    buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
CONNECTIONS = Gauge(
    "db_pool_connections",
    "Connections to PostgreSQL of the live processes: open, and of these in use by a transaction.",
    ["state"],
    multiprocess_mode="livesum",
)
IN_USE = "in_use"
METHODS = {"GET", "HEAD", "OPTIONS", "POST", "PATCH", "PUT", "DELETE"}
JOB_RESULTS = "metrics:job_results"  # field "<job> <result>"


def observe_request(status: int, seconds: float) -> None:
    """Count the current request and log one line, which names its route and not its path."""
    route = request.url_rule.rule if request.url_rule else "unrouted"
    method = request.method if request.method in METHODS else "other"
    count, duration = _of_request(method, route, status)
    count.inc()
    duration.observe(seconds)
    fields = {"method": method, "route": route, "status": status}
    log.info("request", extra={**fields, "duration_ms": round(seconds * 1000, 2)})


@cache
def _of_request(method: str, route: str, status: int) -> tuple[Counter, Histogram]:
    return REQUESTS.labels(method, route, status), DURATION.labels(method, route)


@cache
def _connections(state: str) -> Gauge:
    return CONNECTIONS.labels(state)


@event.listens_for(Pool, "connect")
def _opened(*_: Any) -> None:
    _connections("open").inc()


@event.listens_for(Pool, "close")
def _closed(*_: Any) -> None:
    _connections("open").dec()


@event.listens_for(Pool, "checkout")
def _checked_out(_connection: Any, record: ConnectionPoolEntry, *_: Any) -> None:
    cast("dict[str, Any]", record.record_info)[IN_USE] = True
    _connections(IN_USE).inc()


@event.listens_for(Pool, "checkin")
def _checked_in(_connection: Any, record: ConnectionPoolEntry) -> None:
    """Count a connection as no longer in use.

    SQLAlchemy also reports a connection that could not be opened; that one was never counted.
    """
    if cast("dict[str, Any]", record.record_info).pop(IN_USE, False):
        _connections(IN_USE).dec()


def count_job(redis: Redis, job: str, *, succeeded: bool) -> None:
    """Count one finished job; without Redis it is not counted."""
    try:
        redis.hincrby(JOB_RESULTS, f"{job} {'succeeded' if succeeded else 'failed'}", 1)
    except RedisError:
        log.warning("job_not_counted", extra={"job": job})


def job_results(redis: Redis) -> dict[tuple[str, str], int]:
    """``{(job, "succeeded" or "failed"): count}`` in Redis; the counts restart at zero when Redis is emptied."""
    counted = cast("dict[bytes, bytes]", redis.hgetall(JOB_RESULTS))
    results = {}
    for field, count in counted.items():
        job, _, result = field.decode().partition(" ")
        results[job, result] = int(count)
    return results

"""Metrics: requests by route and status, their duration, results of jobs.

Requests are counted by prometheus_client, correct under several gunicorn workers when
``PROMETHEUS_MULTIPROC_DIR`` is set (``gunicorn.conf.py`` sets it). Each job runs in a process of
its own, so their results are counted in a Redis hash instead.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from typing import cast

from flask import Request
from prometheus_client import Counter, Histogram
from redis import Redis
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

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
METHODS = {"GET", "HEAD", "OPTIONS", "POST", "PATCH", "PUT", "DELETE"}
JOB_RESULTS = "metrics:job_results"  # field "<job> <result>"
WEBHOOK_ATTEMPTS = "metrics:webhook_attempts"  # field "succeeded", "failed" or "disabled"
OVER_LIMITS = "metrics:tenants_over_limits"  # field "usage" or "seats"


def observe_request(request: Request, status: int, seconds: float) -> None:
    """Count a request and log one line, which names its route and not its path."""
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


def count_read(target: str) -> None:
    """Count one request that may read from a replica; ``target`` is the server that answered."""
    READS.labels(target).inc()


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


def webhook_attempts(redis: Redis) -> dict[str, int]:
    """``{"succeeded", "failed" or "disabled": count}``, as :func:`job_results`."""
    counted = cast("dict[bytes, bytes]", redis.hgetall(WEBHOOK_ATTEMPTS))
    return {name.decode(): int(count) for name, count in counted.items()}


def note_over_limits(redis: Redis, counts: Mapping[str, int]) -> None:
    """Store how many tenants are over a limit, by its kind; without Redis nothing is stored."""
    try:
        for kind, count in counts.items():
            redis.hset(OVER_LIMITS, kind, count)
    except RedisError as fault:
        log.warning("over_limits_not_noted", extra={"reason": str(fault)})


def over_limits(redis: Redis) -> dict[str, int]:
    """What :func:`note_over_limits` stored last; empty for never."""
    stored = cast("dict[bytes, bytes]", redis.hgetall(OVER_LIMITS))
    return {kind.decode(): int(count) for kind, count in stored.items()}

"""The page that Prometheus reads: counted requests, and what the engines say at this moment."""

from __future__ import annotations

import os
from collections.abc import Iterator

from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app.core.db import transactions
from app.core.jobs.queues import Queue, connection, queue_named
from app.core.observability.metrics import job_results
from app.operations import service


def page() -> bytes:
    """All metrics in Prometheus' text format; an engine that is away costs its own lines only."""
    live = CollectorRegistry()
    live.register(_Live())
    return generate_latest(_requests()) + generate_latest(live)


def _requests() -> CollectorRegistry:
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry


class _Live(Collector):
    """Read anew at each visit."""

    def collect(self) -> Iterator[Metric]:
        try:
            yield from _inbox()
        except SQLAlchemyError:
            transactions.discard()
        try:
            yield from _queues()
        except RedisError:
            return


def _inbox() -> Iterator[Metric]:
    depth = GaugeMetricFamily("inbox_events", "Events in the inbox.", labels=["state"])
    age = GaugeMetricFamily(
        "inbox_oldest_seconds", "Age of the oldest event of a state.", labels=["state"]
    )
    for state, count, seconds in service.inbox_depth():
        depth.add_metric([state], count)
        age.add_metric([state], seconds)
    yield depth
    yield age


def _queues() -> Iterator[Metric]:
    redis = connection()
    waiting = GaugeMetricFamily("jobs_waiting", "Jobs in the queue.", labels=["queue"])
    for name in Queue:
        waiting.add_metric([name.value], queue_named(name, redis).count)
    yield waiting
    ended = CounterMetricFamily("jobs", "Jobs that ended.", labels=["job", "result"])
    for (job, result), count in job_results(redis).items():
        ended.add_metric([job, result], count)
    yield ended

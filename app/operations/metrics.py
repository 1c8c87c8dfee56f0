"""The metrics that Prometheus collects: counted requests, the inbox and the queues."""

from __future__ import annotations

import os
from collections.abc import Iterator

from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from redis.exceptions import RedisError

from app.core.db.transactions import current_transaction
from app.core.jobs.queues import Queue, connection, queue_named
from app.core.observability.metrics import job_results
from app.operations import service


def page() -> bytes:
    """All metrics in Prometheus' text format.

    Without PostgreSQL the inbox's metrics are absent. Without Redis the queues' metrics are absent.
    """
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
    """The metrics that are read from PostgreSQL and Redis for each answer."""

    def collect(self) -> Iterator[Metric]:
        try:
            yield from _inbox()
        except service.DATABASE_FAULTS:
            current_transaction().close()  # the commit at the request's end then sends nothing
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
    ended = CounterMetricFamily("jobs", "Jobs that have ended.", labels=["job", "result"])
    for (job, result), count in job_results(redis).items():
        ended.add_metric([job, result], count)
    yield ended

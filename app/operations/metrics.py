"""The answer of ``/metrics``: what processes count, queues, connections, and the domains' ``health``.

docs/operations/observability.md lists them, with the alerts to set.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from flask import current_app
from prometheus_client import REGISTRY, Gauge, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from redis.exceptions import RedisError

from app.core.db import tenancy
from app.core.db.replicas.watch import State
from app.core.db.transactions import DATABASE_FAULTS, current_transaction
from app.core.health import gauge
from app.core.jobs.queues import Queue, connection, queue_named
from app.core.observability.metrics import SharedMetric
from app.operations import service
from app.operations.process_files import metrics_in
from app.operations.queues import live_workers

# Shared by the web processes: without Redis it keeps its last values.
WAITING = Gauge("jobs_waiting", "Jobs in the queue.", ["queue"], multiprocess_mode="mostrecent")


def page() -> bytes:
    """All metrics in Prometheus' text format.

    Without PostgreSQL the metrics that are read from it are absent. Without Redis the metrics of
    jobs and processes keep their last values; ``redis_up`` and ``workers_alive`` are 0.
    """
    workers = _read_redis()
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    counted = metrics_in(Path(folder)) if folder else REGISTRY.collect()
    return generate_latest(_All(counted, workers))


def _read_redis() -> int | None:
    """Set the gauges of jobs and processes; the number of workers, None without Redis."""
    redis = connection()
    try:
        for name in Queue:
            WAITING.labels(name.value).set(queue_named(name, redis).count)
        for metric in SharedMetric.all:
            metric.show()
        return len(live_workers(redis))
    except RedisError:
        return None


class _All(Collector):
    """The metrics that the processes have counted, and those that are read for each answer."""

    def __init__(self, counted: Iterable[Metric], workers: int | None) -> None:
        self._counted = counted
        self._workers = workers

    def collect(self) -> Iterator[Metric]:
        yield from self._counted
        yield GaugeMetricFamily(
            "redis_up", "1 if Redis answers, else 0.", int(self._workers is not None)
        )
        yield GaugeMetricFamily(
            "workers_alive", "Workers that take jobs; 0 without Redis.", self._workers or 0
        )
        yield from _replicas()
        try:
            yield from _connections()
            tenancy.enter(tenancy.PLATFORM)
            for domain in current_app.extensions["health"]:
                if hasattr(domain, "metrics"):
                    yield from domain.metrics()
        except DATABASE_FAULTS:
            current_transaction().close()  # the commit at the request's end then sends nothing


def _replicas() -> Iterator[Metric]:
    """The replicas' states as the answering process knows them; nothing without replicas."""
    found = service.replicas()
    if found is None:
        return
    yield gauge(
        "replica_lag_seconds",
        "Seconds that a replica is behind the primary.",
        "replica",
        {replica.name: replica.lag for replica in found.all},
    )
    state = GaugeMetricFamily(
        "replica_state",
        "1 for the state of a replica; only one that is ok is read.",
        labels=["replica", "state"],
    )
    for replica in found.all:
        for name in State:
            state.add_metric([replica.name, name.value], replica.state is name)
    yield state


def _connections() -> Iterator[Metric]:
    found = service.CONNECTIONS.one()
    yield gauge(
        "db_pool_connections",
        "The role's connections to the database: open, and of these in use by a transaction.",
        "state",
        {"open": found.open, "in_use": found.in_use},
    )
    yield GaugeMetricFamily(
        "db_connections_allowed",
        "The connections that PostgreSQL allows to all roles except superusers.",
        found.allowed,
    )

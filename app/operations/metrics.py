"""The metrics that Prometheus collects: requests, jobs, workers, connections, what needs attention.

docs/operations/observability.md lists them, with the alerts to set.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from prometheus_client import REGISTRY, CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from redis.exceptions import RedisError

from app.core.db import tenancy
from app.core.db.replicas.watch import State
from app.core.db.transactions import current_transaction
from app.core.jobs.queues import Queue, connection, live_workers, queue_named
from app.core.observability.heartbeats import last_seen
from app.core.observability.metrics import (
    job_results,
    over_limits,
    webhook_attempts,
)
from app.operations import service

# Read from Redis, and shared by the web processes: without Redis they keep their last values.
WAITING = Gauge("jobs_waiting", "Jobs in the queue.", ["queue"], multiprocess_mode="mostrecent")
ENDED = Gauge(
    "jobs_total", "Jobs that have ended.", ["job", "result"], multiprocess_mode="mostrecent"
)
OVER_LIMITS = Gauge(
    "tenants_over_limits",
    "Tenants that use more than a limit (usage) or have more members than seats (seats).",
    ["kind"],
    multiprocess_mode="mostrecent",
)
LAST_SEEN = Gauge(
    "process_last_seen",
    "Time at which a process of this kind was last seen, in seconds since 1970; 0 for never.",
    ["process"],
    multiprocess_mode="mostrecent",
)
ATTEMPTS = Gauge(
    "webhook_attempts_total",
    "Attempts of deliveries, and endpoints that the sender has disabled.",
    ["result"],
    multiprocess_mode="mostrecent",
)


def page() -> bytes:
    """All metrics in Prometheus' text format.

    Without PostgreSQL the metrics that are read from it are absent. Without Redis the metrics of
    jobs and processes keep their last values; ``redis_up`` and ``workers_alive`` are 0.
    """
    live = CollectorRegistry()
    live.register(_Live(_read_redis()))
    return generate_latest(_counted()) + generate_latest(live)


def _read_redis() -> int | None:
    """Set the gauges of jobs and processes; the number of workers, None without Redis."""
    redis = connection()
    try:
        for name in Queue:
            WAITING.labels(name.value).set(queue_named(name, redis).count)
        for (job, result), count in job_results(redis).items():
            ENDED.labels(job, result).set(count)
        for kind, count in over_limits(redis).items():
            OVER_LIMITS.labels(kind).set(count)
        for outcome, number in webhook_attempts(redis).items():
            ATTEMPTS.labels(outcome).set(number)
        for process, seconds in last_seen(redis).items():
            LAST_SEEN.labels(process.value).set(seconds)
        return len(live_workers(redis))
    except RedisError:
        return None


def _counted() -> CollectorRegistry:
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry


class _Live(Collector):
    """The metrics that are read for each answer."""

    def __init__(self, workers: int | None) -> None:
        self._workers = workers

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "redis_up", "1 if Redis answers, else 0.", int(self._workers is not None)
        )
        yield GaugeMetricFamily(
            "workers_alive", "Workers that take jobs; 0 without Redis.", self._workers or 0
        )
        yield from _replicas()
        try:
            yield from _inbox()
            yield from _events()
            yield from _deliveries()
            yield from _connections()
            yield from _attention()
        except service.DATABASE_FAULTS:
            current_transaction().close()  # the commit at the request's end then sends nothing


def _replicas() -> Iterator[Metric]:
    """What the answering process knows; nothing where there are no replicas."""
    found = service.replicas()
    if found is None:
        return
    lag = GaugeMetricFamily(
        "replica_lag_seconds", "Seconds that a replica is behind the primary.", labels=["replica"]
    )
    state = GaugeMetricFamily(
        "replica_state",
        "1 for the state of a replica; only one that is ok is read.",
        labels=["replica", "state"],
    )
    for replica in found.all:
        lag.add_metric([replica.name], replica.lag)
        for name in State:
            state.add_metric([replica.name, name.value], replica.state is name)
    yield lag
    yield state


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


def _events() -> Iterator[Metric]:
    tenancy.enter(tenancy.PLATFORM)
    sequenced, waiting, seconds = service.event_backlog()
    yield CounterMetricFamily("events_sequenced", "Events that have got a position.", sequenced)
    yield GaugeMetricFamily("events_waiting", "Events that have no position yet.", waiting)
    yield GaugeMetricFamily(
        "events_waiting_seconds", "Age of the oldest event without a position.", seconds
    )


def _deliveries() -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "webhook_events_waiting", "Events that have no deliveries yet.", service.sender_lag()
    )
    depth = GaugeMetricFamily(
        "webhook_deliveries_waiting", "Unfinished deliveries.", labels=["endpoints"]
    )
    age = GaugeMetricFamily(
        "webhook_deliveries_overdue_seconds",
        "Seconds since the oldest unfinished delivery was due.",
        labels=["endpoints"],
    )
    for name, (count, seconds) in service.delivery_backlog().items():
        depth.add_metric([name], count)
        age.add_metric([name], seconds)
    yield depth
    yield age


def _connections() -> Iterator[Metric]:
    found = service.connections()
    connections = GaugeMetricFamily(
        "db_pool_connections",
        "The role's connections to the database: open, and of these in use by a transaction.",
        labels=["state"],
    )
    connections.add_metric(["open"], found.open)
    connections.add_metric(["in_use"], found.in_use)
    yield connections
    yield GaugeMetricFamily(
        "db_connections_allowed",
        "The connections that PostgreSQL allows to all roles except superusers.",
        found.allowed,
    )


def _attention() -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "api_keys_expiring",
        f"API keys that expire within {service.EXPIRING_DAYS} days.",
        service.expiring_keys(),
    )
    tenancy.enter(tenancy.PLATFORM)  # subscriptions belong to tenants
    yield GaugeMetricFamily(
        "tenants_on_unknown_plan",
        "Tenants that have, or whose living subscription names, a plan without a preset; DEFAULT_PLAN"
        " does not count.",
        sum(plan.tenants for plan in service.unknown_plans()),
    )
    tenancy.enter(tenancy.PLATFORM)
    yield GaugeMetricFamily(
        "trials_overdue",
        "Assigned plans that ended more than a minute ago and that no job has ended.",
        service.overdue_trials(),
    )

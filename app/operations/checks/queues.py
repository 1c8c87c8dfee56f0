"""What ``flask doctor`` checks of Redis and the job queues in it."""

from __future__ import annotations

from collections.abc import Iterator

import rq
from redis.exceptions import RedisError

from app.cli.base import first_line
from app.operations.checks.finding import Finding
from app.core.clock import utcnow
from app.core.jobs.queues import Queue, connection, live_workers, queue_named

LONGEST_WAIT = 60.0  # seconds; a job that waits longer in its queue is a fault


def check_redis() -> Iterator[Finding]:
    """The findings on Redis and on each queue."""
    redis = connection()
    try:
        redis.ping()
        yield Finding("redis", True, "answers")
        served = {name for worker in live_workers(redis) for name in worker.queue_names()}
        for name in Queue:
            yield _queue(name, is_served=name.value in served)
    except RedisError as fault:
        fix = "Check that Redis runs and that REDIS_URL is right."
        yield Finding("redis", False, first_line(fault), fix)


def _queue(name: Queue, *, is_served: bool) -> Finding:
    queue = queue_named(name, connection())
    found = f"{queue.count} waiting"
    if not is_served:
        return Finding(f"queue {name}", False, f"{found}, no worker", "Run flask jobs worker.")
    waits = _seconds_waited(queue)
    if waits > LONGEST_WAIT:
        fix = "Run more workers; flask jobs stats shows the queues."
        return Finding(f"queue {name}", False, f"{found}, the first for {waits:.0f} s", fix)
    return Finding(f"queue {name}", True, f"{found}, served")


def _seconds_waited(queue: rq.Queue) -> float:
    first = next(iter(queue.get_jobs(0, 1)), None)
    if first is None or first.enqueued_at is None:
        return 0.0
    return (utcnow() - first.enqueued_at).total_seconds()

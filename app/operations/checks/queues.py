"""The checks of Redis and the job queues in it."""

from __future__ import annotations

import time
from collections.abc import Iterator

from redis.exceptions import RedisError

from app.core.errors import first_line
from app.core.jobs.queues import connection
from app.core.observability.metrics import scheduler_run
from app.operations.checks.finding import Finding
from app.operations.queues import QueueState, read_queues

LATEST_RUN = 120  # seconds; a running scheduler queues jobs each minute
LONGEST_WAIT = 60  # seconds; a job that waits longer in its queue is a fault


def check_redis() -> Iterator[Finding]:
    """The findings on Redis and on each queue."""
    redis = connection()
    try:
        redis.ping()
        yield Finding("redis", True, "answers")
        yield _scheduler(scheduler_run(redis))
        yield from map(_queue, read_queues(redis).queues)
    except RedisError as fault:
        fix = "Check that Redis runs and that REDIS_URL is right."
        yield Finding("redis", False, first_line(fault), fix)


def _scheduler(last: float) -> Finding:
    seconds = time.time() - last
    if seconds > LATEST_RUN:
        found = f"no run for {seconds:.0f} s" if last else "never ran"
        return Finding("scheduler", False, found, "Run flask jobs scheduler.")
    return Finding("scheduler", True, "runs")


def _queue(queue: QueueState) -> Finding:
    check, found = f"queue {queue.name}", f"{queue.waiting} waiting"
    if not queue.workers:
        return Finding(check, False, f"{found}, no worker", "Run flask jobs worker.")
    if queue.waiting_seconds > LONGEST_WAIT:
        fix = "Run more workers; flask jobs stats shows the queues."
        waits = f"{found}, the first for {queue.waiting_seconds} s"
        return Finding(check, False, waits, fix)
    return Finding(check, True, f"{found}, served")

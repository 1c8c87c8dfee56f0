"""The checks of Redis, of the processes that leave signs of life there, and of the job queues."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import starmap

from redis.exceptions import RedisError

from app.core.errors import first_line
from app.core.health import Finding
from app.core.jobs.queues import connection
from app.operations.background import LAST_SEEN
from app.operations.queues import QueueState, live_workers, read_numbers

LONGEST_SILENCE = 60  # seconds; a process shows every 10 seconds that it works
LONGEST_WAIT = 60  # seconds; a job that waits longer in its queue is a fault


def check_redis() -> Iterator[Finding]:
    """The findings on Redis, on each part of the background process and on each queue."""
    redis = connection()
    try:
        seen = LAST_SEEN.read()
        yield Finding("redis", True, "answers")
        yield from starmap(_process, seen.items())
        yield from map(_queue, read_numbers(redis, live_workers(redis)))
    except RedisError as fault:
        fix = "Check that Redis runs and that REDIS_URL is right."
        yield Finding("redis", False, first_line(fault), fix)


def _process(process: str, last: float) -> Finding:
    seconds = time.time() - last
    found = f"seen {max(seconds, 0):.0f} s ago" if last else "never seen"
    is_seen = seconds < LONGEST_SILENCE
    fix = f"Run flask jobs background, or flask jobs {process}."
    if process == "streams":
        fix = "Run the stream process, as the Procfile does."
    fix = "" if is_seen else fix
    return Finding(f"process {process}", is_seen, found, fix)


def _queue(queue: QueueState) -> Finding:
    check, found = f"queue {queue.name}", f"{queue.waiting} waiting"
    if not queue.workers:
        return Finding(check, False, f"{found}, no worker", "Run flask jobs worker.")
    if queue.waiting_seconds > LONGEST_WAIT:
        fix = "Run more workers; flask jobs stats shows the queues."
        waits = f"{found}, the first for {queue.waiting_seconds} s"
        return Finding(check, False, waits, fix)
    return Finding(check, True, f"{found}, served")

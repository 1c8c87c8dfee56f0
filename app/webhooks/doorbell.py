"""Telling the worker that there is something to do, once for many.

A job works off everything that is due, so one waiting job is enough for all events that come
before it starts. The bell is a key in Redis: whoever sets it pushes the job, and the job takes it
down before it looks at the inbox. An event that found the bell set was durable by then, so the
job finds it. Without Redis nothing is rung; the next ring, or the sweeper, makes it good.

The job looks once more :data:`HEARD` seconds after it found nothing left, so a ring of a process
speaks for all its events of the next :data:`SILENT` seconds: in a storm of events few ask Redis.
"""

from __future__ import annotations

import logging
import time

from flask import current_app
from redis.exceptions import RedisError

from app.core.jobs.queues import connection

log = logging.getLogger(__name__)

BELL = "webhooks:bell"
LASTING = 10_000
"""Milliseconds after which a bell rings again whose job was lost."""
SILENT, HEARD = 0.03, 0.05
"""Seconds; a ring is heard for longer than it silences others."""


def ring() -> bool:
    """Set the bell; whether it was down, so that a job has to be pushed."""
    now = time.monotonic()
    if now - current_app.extensions.get(BELL, float("-inf")) < SILENT:
        return False
    try:
        is_new = connection().set(BELL, b"1", nx=True, px=LASTING)
    except RedisError as fault:
        log.warning("webhook_bell_failed", extra={"reason": type(fault).__name__})
        return False
    current_app.extensions[BELL] = now
    return bool(is_new)


def take_down() -> None:
    """Let the next event ring again."""
    try:
        connection().delete(BELL)
    except RedisError as fault:
        log.warning("webhook_bell_failed", extra={"reason": type(fault).__name__})

"""Notifying the worker of new events: one queued job is enough for all events that are waiting.

The job works until no event is due. So a job that is queued but has not started will find every
event that was committed before. A key in Redis says that such a job is queued; the job deletes the
key before it looks for events. Where Redis is away, the sweeper finds the events later.
"""

from __future__ import annotations

import logging

from redis.exceptions import RedisError

from app.core.db import transactions
from app.core.jobs.queues import JOBS, connection

log = logging.getLogger(__name__)

PROCESS_EVENTS = "app.webhooks.jobs.process_events"
IS_QUEUED_KEY = "webhooks:process_events_is_queued"
IS_QUEUED_LASTS = 10_000
"""Milliseconds. The job of an expired key may be lost, so the next event queues another one."""


def notify_worker() -> None:
    """Queue the job after the current transaction has committed, unless one is queued already."""
    transactions.on_commit(_queue_job)


def expect_further_jobs() -> None:
    """Let the next event queue a job again: called when a job starts."""
    try:
        connection().delete(IS_QUEUED_KEY)
    except RedisError as fault:
        log.warning("webhook_notification_failed", extra={"reason": type(fault).__name__})


def _queue_job() -> None:
    try:
        is_first = connection().set(IS_QUEUED_KEY, b"1", nx=True, px=IS_QUEUED_LASTS)
    except RedisError as fault:
        log.warning("webhook_notification_failed", extra={"reason": type(fault).__name__})
        return
    if is_first:
        JOBS[PROCESS_EVENTS].push()

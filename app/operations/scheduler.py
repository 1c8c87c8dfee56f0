"""The scheduler: queues the periodic jobs (those with ``every``)."""

from __future__ import annotations

import time
from collections.abc import Callable

from flask import Flask

from app.core.jobs.queues import JOBS

RETRY = 15  # seconds until the next attempt after a job could not be queued


def run_scheduler(app: Flask, *, stop: Callable[[], bool]) -> None:
    """Push each periodic job when it is due, until ``stop()`` returns True.

    Several schedulers may run at once, because a job may run twice.
    """
    due = {scheduled.name: 0.0 for scheduled in JOBS.values() if scheduled.every}
    while not stop():
        now = time.monotonic()
        with app.app_context():
            for name in [name for name, moment in due.items() if moment <= now]:
                every = JOBS[name].every or 0
                pause = every if JOBS[name].push_periodically() else min(every, RETRY)
                due[name] = now + pause
        time.sleep(0.5)

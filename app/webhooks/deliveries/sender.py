"""The sender: one thread works with the database, many others wait for receivers.

So a hundred deliveries at once need one database connection. Any number of senders may run.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from uuid import UUID

from flask import Flask

from app.core.db.transactions import DATABASE_FAULTS, RowChanged
from app.core.jobs.signals import listening
from app.events.sequencer import DELIVERIES
from app.webhooks.deliveries import work
from app.webhooks.deliveries.attempt import Result, Work, attempt
from app.webhooks.deliveries.service import ATTEMPTS

log = logging.getLogger(__name__)

SLOW = 1.0  # seconds after which an attempt is slow, and so is its endpoint until a fast attempt
TOGETHER = 100  # attempts at a time that are not slow
SLOW_TOGETHER = 50  # slow attempts at a time, above which none of a slow endpoint begins
THREADS = 200  # attempts at a time
INTERVAL = 0.1  # seconds between two looks at the database; a message through Redis ends the wait
PAUSE = 1.0  # seconds, after a fault of PostgreSQL
FAULTS = (*DATABASE_FAULTS, RowChanged)


def run_sender(app: Flask, *, stop: Callable[[], bool]) -> None:
    """Deliver events until ``stop()``; the deliveries that have begun are finished first."""
    sender = Sender(app)
    with (
        listening(app, DELIVERIES, sender.wake),
        ThreadPoolExecutor(THREADS, thread_name_prefix="delivery") as threads,
    ):
        while not stop():
            with _in_context(app):
                for one in sender.next_work():
                    threads.submit(sender.deliver, one)
            sender.wait()
    with _in_context(app):
        sender.record()


@contextmanager
def _in_context(app: Flask) -> Iterator[None]:
    """Run the block in a context of the application; after a fault of PostgreSQL, pause."""
    try:
        with app.app_context():
            yield
    except FAULTS as fault:
        log.warning("sender_failed", extra={"reason": type(fault).__name__})
        time.sleep(PAUSE)


class Sender:
    """The deliveries that this process has claimed, and their results."""

    def __init__(self, app: Flask) -> None:
        self._service = app
        self._running: dict[Work, float] = {}  # when each attempt began
        self._slow: set[UUID] = set()  # endpoints
        self._inbox: SimpleQueue[Result | None] = SimpleQueue()
        self._results: list[Result] = []
        self._is_prepared = False
        self._is_woken = True  # there may be events without deliveries
        self._next_look = 0.0

    def wake(self) -> None:
        """End the wait: there may be something to do."""
        self._inbox.put(None)

    def next_work(self) -> list[Work]:
        """Record results, add the deliveries of new events, and claim those that are due.

        Without ``SECRETS_KEY`` none is claimed, because its secret cannot be read.
        """
        if not self._is_prepared:
            work.prepare()
            self._is_prepared = True
        self._take(0)
        if self._is_woken or time.monotonic() >= self._next_look:
            self._is_woken = work.add_deliveries() == work.BATCH
            self._next_look = time.monotonic() + INTERVAL
        has_keys = bool(self._service.extensions["config"].secrets_key)
        return self._claim() if has_keys else self._exchange(0)

    def deliver(self, one: Work) -> None:
        """Attempt a delivery, in a thread of its own."""
        with self._service.app_context():
            self._inbox.put(attempt(one))

    def record(self) -> None:
        """Store the results that there are; after a fault they are still there."""
        self._take(0)
        if self._results:
            self._exchange(0)

    def _claim(self) -> list[Work]:
        """Claim as many as may begin. Slow attempts leave their places to others."""
        began = time.monotonic() - SLOW
        self._slow |= {one.endpoint.id for one, at in self._running.items() if at < began}
        slow = sum(one.endpoint.id in self._slow for one in self._running)
        free = min(TOGETHER + slow, THREADS) - len(self._running)
        return self._exchange(free, most_slow=max(SLOW_TOGETHER - slow, 0))

    def _exchange(self, most: int, most_slow: int = 0) -> list[Work]:
        slow = list(self._slow)
        claimed, disabled = work.exchange(self._results, most, slow=slow, most_slow=most_slow)
        self._running |= dict.fromkeys(claimed, time.monotonic())
        if self._results:
            counts = Counter(
                "succeeded" if one.has_succeeded else "failed" for one in self._results
            )
            ATTEMPTS.add({**counts, "disabled": disabled})
            self._results = []
        return claimed

    def wait(self) -> None:
        """Wait for a result or a message, at most :data:`INTERVAL`."""
        self._take(0 if self._is_woken else INTERVAL)

    def _take(self, seconds: float) -> None:
        """Take what is in the inbox; where it is empty, wait for the first."""
        try:
            taken = self._inbox.get(timeout=seconds) if seconds else self._inbox.get_nowait()
            while True:
                if taken is None:
                    self._is_woken = True
                else:
                    self._results.append(taken)
                    del self._running[taken.work]
                    if taken.milliseconds < SLOW * 1000:
                        self._slow.discard(taken.work.endpoint.id)
                taken = self._inbox.get_nowait()
        except Empty:
            return

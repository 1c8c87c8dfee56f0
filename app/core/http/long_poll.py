"""Long polls: a request that has nothing to answer yet waits, without a transaction.

The view calls :func:`wait_for`, which ends the transaction. The Blueprint calls the view again in a
new one, credential included, when there may be something, or the time is over.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from flask import Flask, current_app, g

from app.core.db.transactions import transaction

T = TypeVar("T")

EXTENSION = "long_poll_places"
INTERVAL = 0.1  # seconds between two calls of ``has_more``

stopping = threading.Event()
"""Set when the process stops: all waiting requests are answered."""


class NotYet(Exception):
    """There is nothing to answer until ``has_more()``, which runs in a transaction of its own."""

    def __init__(self, has_more: Callable[[], bool]) -> None:
        super().__init__()
        self.has_more = has_more


def configure_long_polls(app: Flask, *, threads: int) -> None:
    """Let at most a quarter of the threads wait, and at least one."""
    app.extensions[EXTENSION] = threading.BoundedSemaphore(max(1, threads // 4))


def wait_for(has_more: Callable[[], bool], *, seconds: float) -> dict[str, str]:
    """Wait until ``has_more()``; called by a view that has nothing to answer.

    Returns the headers of the empty answer: when the time is over, when the process stops, and at
    once where too many requests wait, with ``Retry-After``.
    """
    if "poll_ends_at" not in g:
        if stopping.is_set() or not current_app.extensions[EXTENSION].acquire(blocking=False):
            return {"Retry-After": "1"}
        g.poll_ends_at = time.monotonic() + seconds
    if stopping.is_set() or time.monotonic() >= g.poll_ends_at:
        return {}
    raise NotYet(has_more)


def has_waited() -> bool:
    """Whether the current request has waited, or has begun to."""
    return "poll_ends_at" in g


def repeat(work: Callable[[], T]) -> T:
    """``work()``, again after each :class:`NotYet`."""
    try:
        while True:
            try:
                return work()
            except NotYet as pause:
                _wait(pause.has_more)
    finally:
        if g.pop("poll_ends_at", None) is not None:
            current_app.extensions[EXTENSION].release()


def _wait(has_more: Callable[[], bool]) -> None:
    while (left := g.poll_ends_at - time.monotonic()) > 0:
        if stopping.wait(min(INTERVAL, left)):
            return
        with transaction():
            if has_more():
                return

"""Signals: telling another process, after the commit, that it has something to do.

They are best effort, because a process that waits for a signal also looks by itself. A process
sends each signal at most once in :data:`PAUSE` seconds, and none for what happens meanwhile.
Therefore a process that has received a signal looks again after :data:`PAUSE` seconds or more.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flask import Flask
from redis.exceptions import RedisError

from app.core.db import transactions
from app.core.jobs.queues import connection
from app.core.redis_clients import request_client

log = logging.getLogger(__name__)

PAUSE = 0.03  # seconds


class Signal:
    """One kind of signal: a message on a channel of Redis, or what ``send`` does instead."""

    def __init__(self, channel: str, send: Callable[[], object] | None = None) -> None:
        self.channel = channel
        self._send = send or (lambda: connection().publish(channel, b""))
        self._sent_at = float("-inf")
        self._has_failed = False

    def notify(self) -> None:
        """Send the signal after the current transaction's commit; at once outside a transaction."""
        if not transactions.is_open():
            self._notify()
        elif self._notify not in transactions.current_transaction().callbacks:
            transactions.on_commit(self._notify)

    def _notify(self) -> None:
        now = time.monotonic()
        if now - self._sent_at < PAUSE:
            return
        self._sent_at = now
        try:
            self._send()
            self._has_failed = False
        except RedisError as fault:
            if not self._has_failed:
                fields = {"channel": self.channel, "reason": type(fault).__name__}
                log.warning("signal_not_sent", extra=fields)
            self._has_failed = True


@contextmanager
def listening(app: Flask, signal: Signal, heard: Callable[[], None]) -> Iterator[None]:
    """Call ``heard`` for each message of a signal, in a thread, until the block ends."""
    config = app.extensions["config"]
    redis: Any = request_client(config.redis_url, config.redis_timeout)
    messages = redis.pubsub(ignore_subscribe_messages=True)
    ended = threading.Event()

    def listen() -> None:
        while not ended.is_set():
            try:
                if not messages.subscribed:
                    messages.subscribe(signal.channel)
                if messages.get_message(timeout=1) is not None:
                    heard()
            except RedisError:
                ended.wait(1)

    threading.Thread(target=listen, daemon=True).start()
    try:
        yield
    finally:
        ended.set()

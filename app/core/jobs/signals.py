"""Signals: after the commit, a process notifies another that there is work.

A signal can be lost, so a waiting process also looks for work at intervals. A process sends each
signal at most once in :data:`PAUSE` seconds; further ones are dropped, not delayed. Therefore the
receiver must look for work once more, :data:`PAUSE` seconds or more after a signal.
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
    """One kind of signal: a message on the Redis ``channel``, or a call of ``send`` instead."""

    def __init__(self, channel: str, send: Callable[[], object] | None = None) -> None:
        self.channel = channel
        self._send = send or (lambda: connection().publish(channel, b""))
        self._sent_at = float("-inf")
        self._has_failed = False

    def notify(self) -> None:
        """Send the signal after the transaction's commit, or at once outside a transaction."""
        if not transactions.is_open():
            self._notify()
        elif self._notify not in (callbacks := transactions.current_transaction().callbacks):
            callbacks.append(self._notify)

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
    """While the block runs, a thread calls ``heard`` for each message of the signal."""
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

"""When a scheduler, a sequencer and a sender were last seen; RQ knows the workers itself."""

from __future__ import annotations

import time
from contextlib import suppress
from enum import StrEnum
from typing import cast

from flask import Flask
from redis import Redis
from redis.exceptions import RedisError

from app.core.redis_clients import request_client

LAST_SEEN = "metrics:process_last_seen"  # field: a Process
EVERY = 10.0  # seconds


class Process(StrEnum):
    """The parts of the background process; each can also run as a process of its own."""

    SCHEDULER = "scheduler"
    SEQUENCER = "sequencer"
    SENDER = "sender"


class Heartbeat:
    """The signs of life of one part."""

    def __init__(self, process: Process, app: Flask) -> None:
        config = app.extensions["config"]
        self._process = process
        self._redis = request_client(config.redis_url, config.redis_timeout)
        self._due = 0.0

    def beat(self) -> None:
        """Store that the part works, every :data:`EVERY` seconds. Without Redis nothing is stored."""
        now = time.monotonic()
        if now >= self._due:
            self._due = now + EVERY
            with suppress(RedisError):
                self._redis.hset(LAST_SEEN, self._process, time.time())


def last_seen(redis: Redis) -> dict[Process, float]:
    """When one of each kind was last seen, in seconds since 1970; 0 for never."""
    found = cast("dict[bytes, bytes]", redis.hgetall(LAST_SEEN))
    return {process: float(found.get(process.encode(), 0)) for process in Process}

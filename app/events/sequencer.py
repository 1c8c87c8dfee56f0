"""The sequencer process: gives events their positions soon after their commit."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import psycopg2
from flask import Flask
from redis.exceptions import RedisError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.audit.outbox import CHANNEL
from app.core.observability.heartbeats import Heartbeat, Process
from app.core.redis_clients import request_client
from app.events import positions
from app.webhook_endpoints.wake import wake_sender

log = logging.getLogger(__name__)

INTERVAL = 0.1  # seconds between two looks at the outbox; a message through Redis ends the wait
PAUSE = 1.0  # seconds, after a fault of PostgreSQL
FEW = 10  # events in the first transaction after a fault


def run_sequencer(app: Flask, *, stop: Callable[[], bool]) -> None:
    """Move events from the outbox to their positions, until ``stop()``.

    Of several sequencers one works at a time; any other continues when that one ends.
    """
    config = app.extensions["config"]
    redis: Any = request_client(config.redis_url, config.redis_timeout)
    messages = redis.pubsub()
    heartbeat = Heartbeat(Process.SEQUENCER, redis)
    limit = positions.BATCH
    while not stop():
        heartbeat.beat()
        try:
            with app.app_context():
                moved = positions.sequence(limit)
                if moved:
                    wake_sender()
        except (psycopg2.Error, PoolTimeout) as fault:
            log.warning("sequencer_failed", extra={"reason": type(fault).__name__})
            limit = FEW  # so many are moved in time, however large they are
            time.sleep(PAUSE)
            continue
        if moved < limit:
            _wait(messages)
        limit = positions.BATCH


def _wait(messages: Any) -> None:
    """Wait for a message that the outbox has new rows; without Redis the whole interval."""
    try:
        if not messages.subscribed:
            messages.subscribe(CHANNEL)
        messages.get_message(timeout=INTERVAL)
    except RedisError:
        time.sleep(INTERVAL)

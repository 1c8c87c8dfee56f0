"""Telling the sender that there is something to do; best effort, since it also looks by itself."""

from __future__ import annotations

import logging

from redis.exceptions import RedisError

from app.core.db import transactions
from app.core.jobs.queues import connection

log = logging.getLogger(__name__)

CHANNEL = "webhooks:due"  # of Redis; a message says that deliveries are due


def wake_sender() -> None:
    """Wake the sender after the commit; at once outside a transaction."""
    if transactions.is_open():
        transactions.on_commit(_publish)
    else:
        _publish()


def _publish() -> None:
    try:
        connection().publish(CHANNEL, b"")
    except RedisError as fault:
        log.info("sender_not_notified", extra={"reason": type(fault).__name__})

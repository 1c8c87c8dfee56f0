"""Counting attempts. Senders answer no metrics, so the counts are in a Redis hash."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

from redis.exceptions import RedisError

from app.core.jobs.queues import connection
from app.core.observability.metrics import WEBHOOK_ATTEMPTS
from app.webhook_deliveries.attempt import Result

log = logging.getLogger(__name__)


def count_results(results: Sequence[Result], disabled: int) -> None:
    """Count attempts by what came of them, and disabled endpoints; not without Redis."""
    counts = Counter("succeeded" if one.has_succeeded else "failed" for one in results)
    counts["disabled"] += disabled
    try:
        with connection().pipeline(transaction=False) as pipeline:
            for name, count in counts.items():
                pipeline.hincrby(WEBHOOK_ATTEMPTS, name, count)
            pipeline.execute()
    except RedisError as fault:
        log.warning("attempts_not_counted", extra={"reason": type(fault).__name__})

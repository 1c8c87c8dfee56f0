"""Changes many rows in small batches, so that other transactions never wait long for a lock."""

from __future__ import annotations

from collections.abc import Callable

from app.core.db import tenancy

BATCH = 500  # rows


def in_batches(change: Callable[[int], int]) -> int:
    """Call ``change(BATCH)`` until it changes fewer than BATCH rows; returns the total.

    Each call runs in its own transaction, in the platform's scope.
    """
    total, changed = 0, BATCH
    while changed >= BATCH:
        with tenancy.platform_transaction():
            changed = change(BATCH)
        total += changed
    return total

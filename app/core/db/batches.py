"""Deletes many rows in small batches, so that other transactions never wait long for a lock."""

from __future__ import annotations

from collections.abc import Callable

from app.core.db import tenancy

BATCH = 500  # rows


def delete_in_batches(delete: Callable[[int], int]) -> int:
    """Call ``delete(BATCH)`` until it deletes fewer than BATCH rows; returns the total.

    Each call runs in its own transaction, in the platform's scope.
    """
    total, deleted = 0, BATCH
    while deleted >= BATCH:
        with tenancy.platform_transaction():
            deleted = delete(BATCH)
        total += deleted
    return total

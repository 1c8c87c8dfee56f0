"""Delete many rows in small batches, so that no other transaction waits long for one of them."""

from __future__ import annotations

import time
from collections.abc import Callable

from app.core.db import tenancy
from app.core.db.transactions import transaction

LEAST, FIRST, MOST = 10, 100, 1_000  # rows of a batch
WANTED_SECONDS = 0.02  # of a batch; a disk that is busy for a moment still leaves it below 0.1


def delete_in_batches(delete: Callable[[int], int]) -> int:
    """Call ``delete`` with a number of rows until it deletes fewer; the number of all of them.

    Each call has a transaction of its own in the platform's scope. The number follows from the time
    that the last batch took, so batches of large rows and those of a slow disk have fewer.
    """
    total, size = 0, FIRST
    while True:
        started = time.monotonic()
        with transaction():
            tenancy.enter(tenancy.PLATFORM)
            deleted = delete(size)
        total += deleted
        if deleted < size:
            return total
        seconds = time.monotonic() - started
        size = _next_size(size, seconds)


def _next_size(size: int, seconds: float) -> int:
    """How many rows would have taken :data:`WANTED_SECONDS`, but at most twice as many as before."""
    fitting = int(size * WANTED_SECONDS / seconds)
    return max(LEAST, min(fitting, 2 * size, MOST))

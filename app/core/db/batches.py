"""Delete many rows in small batches, so that no other transaction waits long for one of them."""

from __future__ import annotations

from collections.abc import Callable

from app.core.db import tenancy
from app.core.db.transactions import transaction

BATCH = 500  # rows


def delete_in_batches(delete: Callable[[int], int]) -> int:
    """Call ``delete`` with a number of rows until it deletes fewer; the number of all of them.

    Each call has a transaction of its own in the platform's scope.
    """
    total, deleted = 0, BATCH
    while deleted >= BATCH:
        with transaction():
            tenancy.enter(tenancy.PLATFORM)
            deleted = delete(BATCH)
        total += deleted
    return total

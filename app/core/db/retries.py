"""Runs a transaction again after a conflict, or after a replica has failed."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

import psycopg2

from app.core.db.transactions import STALE_PREPARED, RowChanged, Transaction, transaction

T = TypeVar("T")
log = logging.getLogger(__name__)

ATTEMPTS = 4
# Serialization failure; deadlock; foreign key to a row that was deleted after this one read it.
RETRIED = {"40001", "40P01", "23503", *STALE_PREPARED}


def attempts(
    make: Callable[[int], Transaction] = lambda number: Transaction(),
) -> Iterator[AbstractContextManager[Transaction]]:
    """Yield transactions until one commits. Use it as ``for attempt in attempts():``.

    The body of the loop is ``with attempt:``. It runs again

    - after a conflict with another transaction;
    - if a prepared statement is no longer valid;
    - if the first attempt on the primary lost its connection before the commit (a commit that lost
      its connection may have succeeded, so it is not repeated);
    - after any error on a replica, because the primary may give another result.

    There are at most :data:`ATTEMPTS` attempts, with a short random pause between them on the
    primary. ``make``
    creates the transaction of an attempt from its number, which begins at 1. Never ``return``
    inside ``with attempt:``. If the commit then failed, the loop would end without an error.
    """
    is_first = True  # whether this is the first attempt on the primary
    for number in range(1, ATTEMPTS + 1):
        current = make(number)
        yield _attempt(current, number, is_first=is_first)
        if current.has_committed:
            return
        is_first = current.standby is not None


def run(work: Callable[[], T]) -> T:
    """Run ``work`` in a transaction; repeat it in the cases that :func:`attempts` lists."""
    for attempt in attempts():
        with attempt:
            result = work()
    return result


@contextmanager
def _attempt(current: Transaction, number: int, *, is_first: bool) -> Iterator[Transaction]:
    """Run the block in a transaction. Suppress its error if the next attempt may succeed."""
    try:
        with transaction(current):
            yield current
    except Exception as fault:
        if current.standby is not None:
            current.standby.note_failure(current, fault)
            return
        is_lost = is_first and current.is_lost and not current.is_committing
        is_conflict = isinstance(fault, RowChanged) or getattr(fault, "pgcode", None) in RETRIED
        may_succeed = is_conflict or (is_lost and isinstance(fault, psycopg2.Error))
        if number == ATTEMPTS or not may_succeed:
            raise
        log.info("transaction_retried", extra={"attempt": number})
        time.sleep(random.uniform(0.005, 0.02) * number)  # noqa: S311 - jitter, no secret

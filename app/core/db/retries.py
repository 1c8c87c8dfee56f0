"""Runs a transaction again after a conflict, or after a replica has failed."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

import psycopg2

from app.core.db.transactions import RowChanged, Transaction, transaction

T = TypeVar("T")
log = logging.getLogger(__name__)

ATTEMPTS = 4
# Serialization failure; deadlock; foreign key to a row that was deleted after this one read it.
RETRIED = {"40001", "40P01", "23503"}


def run(
    work: Callable[[], T], make: Callable[[int], Transaction] = lambda number: Transaction()
) -> T:
    """Run ``work`` in a transaction, and return its result after the commit.

    ``work`` runs again

    - after a conflict with another transaction;
    - if the first attempt on the primary lost its connection before the commit (a commit that lost
      its connection may have succeeded, so it is not repeated), or met a prepared statement that is
      no longer valid;
    - after any error on a replica, because the primary may give another result.

    There are at most :data:`ATTEMPTS` attempts, with a short random pause between them on the
    primary. ``make`` creates the transaction of an attempt from its number, which begins at 1.
    """
    number, may_reconnect = 0, True
    while True:
        number += 1
        current = make(number)
        try:
            with transaction(current):
                return work()
        except Exception as fault:
            if current.standby is not None:
                current.standby.note_failure(current, fault)
                continue
            is_conflict = isinstance(fault, RowChanged) or getattr(fault, "pgcode", None) in RETRIED
            is_lost = isinstance(fault, psycopg2.Error) and current.is_lost
            may_succeed = is_conflict or (is_lost and may_reconnect and not current.is_committing)
            if number == ATTEMPTS or not may_succeed:
                raise
        may_reconnect = False
        log.info("transaction_retried", extra={"attempt": number})
        time.sleep(random.uniform(0.005, 0.02) * number)  # noqa: S311 - jitter, no secret

"""Running a transaction again after a conflict, or after a replica has failed."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TypeVar

import psycopg2

from app.core.db.transactions import STALE_PREPARED, RowChanged, Transaction, transaction

T = TypeVar("T")
log = logging.getLogger(__name__)

ATTEMPTS = 4
# Serialization failure, deadlock, and a foreign key to a row that was deleted after it was read.
RETRIED = {"40001", "40P01", "23503", *STALE_PREPARED}


class Attempt:
    """One of several attempts at a transaction; see :func:`attempts`."""

    is_done = False

    def __init__(self, number: int, current: Transaction, *, is_first: bool) -> None:
        self.number = number
        self.current = current
        self._is_first = is_first  # on the primary
        self._block = transaction(current)

    def __enter__(self) -> Transaction:
        return self._block.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        """Commit or roll back. An error is swallowed if the next attempt may succeed."""
        try:
            self._block.__exit__(kind, fault, traceback)
        except Exception as raised:  # another one, such as that of the commit
            if self._may_repeat(raised):
                return True
            raise
        if isinstance(fault, Exception):
            return self._may_repeat(fault)
        self.is_done = True
        return False

    def _may_repeat(self, fault: Exception) -> bool:
        current = self.current
        if current.standby is not None:
            current.standby.note_failure(current, fault)
            return True
        if self.number == ATTEMPTS or not isinstance(fault, psycopg2.Error | RowChanged):
            return False
        is_lost = self._is_first and current.is_lost and not current.is_committing
        if not (is_lost or _is_conflict(fault)):
            return False
        log.info("transaction_retried", extra={"attempt": self.number})
        time.sleep(random.uniform(0.005, 0.02) * self.number)  # noqa: S311 - jitter, no secret
        return True


def attempts(
    make: Callable[[int], Transaction] = lambda number: Transaction(),
) -> Iterator[Attempt]:
    """Transactions, one after another, until one commits: ``for attempt in attempts():``.

    The body is ``with attempt:``. It runs again after a conflict with another transaction, if a
    prepared statement is no longer valid, if the first one lost its connection, and after any
    error on a replica, since the primary may know better. It does not if the connection was lost
    during the commit, because then nobody knows whether the changes are durable. There are at most
    :data:`ATTEMPTS`, with a short random pause between them; ``make`` creates the transaction of
    each from its number, which begins at 1. Never ``return`` inside ``with attempt:``: if the commit
    failed then, there would be no further attempt and no error.
    """
    is_first = True
    for number in range(1, ATTEMPTS + 1):
        attempt = Attempt(number, make(number), is_first=is_first)
        yield attempt
        if attempt.is_done:
            return
        is_first = attempt.current.standby is not None


def run(work: Callable[[], T]) -> T:
    """Run ``work`` in a transaction, again where :func:`attempts` makes a further attempt."""
    for attempt in attempts():
        with attempt:
            result = work()
    return result


def _is_conflict(fault: Exception) -> bool:
    return isinstance(fault, RowChanged) or getattr(fault, "pgcode", None) in RETRIED

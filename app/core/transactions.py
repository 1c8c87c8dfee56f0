"""The one unit of work: everything that writes runs in :func:`transaction`.

Nothing else in the program commits. What must happen only when the change is
durable (pushing a job) is handed to :func:`on_commit`.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy.exc import DBAPIError

from app.extensions import db

T = TypeVar("T")
log = logging.getLogger(__name__)

ATTEMPTS = 4
RETRIED = {"40001", "40P01"}  # serialization_failure, deadlock_detected


@dataclass
class Unit:
    """How far a transaction has come; after a failed commit nobody knows whether it happened."""

    is_committing: bool = False


@contextmanager
def transaction() -> Iterator[Unit]:
    """Run the block in one transaction: commit at its end, roll back on any error.

    Callbacks given to :func:`on_commit` run after the commit, in their order; one
    that fails is logged and stops nothing, since the change is already durable.
    Transactions do not nest: an inner one is a programming error.
    """
    session = db.session()
    if session.info.get("open"):
        raise RuntimeError("transaction() does not nest")
    session.info.clear()
    session.info["open"] = True
    unit = Unit()
    try:
        yield unit
        unit.is_committing = True
        session.commit()
        callbacks = session.info.get("on_commit", ())
    except BaseException:
        session.expunge_all()
        session.rollback()
        raise
    finally:
        session.info.clear()
    for callback in callbacks:
        try:
            callback()
        except Exception:
            log.exception("on_commit_failed")


def run(work: Callable[[], T]) -> T:
    """Run ``work`` in a transaction; a deadlock or serialization failure runs it again.

    At most :data:`ATTEMPTS` times, with a short random pause, then the database's error goes on.
    A connection that turns out to be lost runs it once more, unless that was at the commit.
    """
    unit = Unit()
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with transaction() as unit:
                return work()
        except DBAPIError as fault:
            is_lost = fault.connection_invalidated and attempt == 1 and not unit.is_committing
            if attempt == ATTEMPTS or not (is_lost or sqlstate(fault) in RETRIED):
                raise
            log.info("transaction_retried", extra={"attempt": attempt})
            time.sleep(random.uniform(0.005, 0.02) * attempt)  # noqa: S311 - jitter, no secret
    raise AssertionError("unreachable")


def discard() -> None:
    """Give up what the current transaction did so far, after a database error that is tolerated."""
    db.session.rollback()


def on_commit(callback: Callable[[], Any]) -> None:
    """Call ``callback`` once the current transaction is durable; never if it rolls back."""
    info = db.session().info
    if not info.get("open"):
        raise RuntimeError("on_commit() needs an open transaction")
    info.setdefault("on_commit", []).append(callback)


def context() -> dict[str, Any]:
    """Facts that hold for the current transaction only (scope, precondition); empty outside one."""
    return db.session().info


def sqlstate(fault: BaseException) -> str | None:
    """PostgreSQL's five-character code of a database error, or None."""
    return getattr(getattr(fault, "orig", None), "pgcode", None)

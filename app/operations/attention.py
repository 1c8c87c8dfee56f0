"""Numbers of what wants somebody's attention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from flask import current_app
from psycopg2.errors import QueryCanceled

from app.core.clock import rfc3339, utcnow
from app.core.db.statements import Statement
from app.core.db.transactions import savepoint
from app.operations.checks.database import LIMIT_TIME, QUICKLY
from app.operations.checks.everything import check_running

MOST = 1_000  # rows that are counted
DAYS = 7


@dataclass(frozen=True)
class Number:
    """How much of one kind there is; ``count`` None: it was not counted in time."""

    name: str
    count: int | None
    is_more: bool
    list: str


def count_work() -> Iterator[Number]:
    """Each number is one statement with a time-out. The transaction has the platform's scope."""
    LIMIT_TIME.first(limit=QUICKLY)
    now, span = utcnow(), timedelta(days=DAYS)
    ends = {"soon": now + span, "since": now - span, "month": now + timedelta(days=30)}
    times = {name: rfc3339(moment) for name, moment in ends.items()}
    for domain in current_app.extensions["health"]:
        for name, (rows, path) in getattr(domain, "WORK", {}).items():
            count = _count(name, rows)
            is_more = count is not None and count > MOST
            yield Number(name, MOST if is_more else count, is_more, path.format(**times))
    findings = check_running(without="limits")  # they have a number
    faults = sum(not finding.ok for finding in findings)
    yield Number("findings", faults, False, "/v1/operations/findings")


def _count(name: str, rows: str) -> int | None:
    sql = f"SELECT count(*) FROM ({rows.format(days=DAYS)} LIMIT {MOST + 1}) AS found"  # noqa: S608
    try:
        with savepoint():
            return int(Statement(f"work.{name}", sql, prepare=False).scalar())
    except QueryCanceled:
        return None

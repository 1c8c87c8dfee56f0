"""Positions: given to the events of committed transactions, and removed with old events.

One process at a time gives positions: it holds a lock until its transaction ends. So positions have
no gaps, and a reader who has read up to a position never misses an event, whatever commits late.
"""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import bindparam, func, select, text

from app.config import current_config
from app.core.clock import utcnow
from app.core.db import tenancy
from app.core.db.batches import delete_in_batches
from app.core.db.models import Moment
from app.core.db.statements import Statement
from app.core.db.transactions import transaction

BATCH = 1000  # events in one transaction
MAX_BYTES = 20 * 1024  # of an event; a larger one is truncated

FROZEN = "5s"  # after which PostgreSQL ends the transaction of a process that sends nothing

LOCK_KEY = 7_021_117  # of the advisory lock; who holds it gives positions, or lets nobody do it
TRY_LOCK = Statement(
    "events.try_lock",
    select(
        func.pg_try_advisory_xact_lock(LOCK_KEY).label("is_mine"),
        func.set_config("idle_in_transaction_session_timeout", FROZEN, True),
        *tenancy.ENTER_PLATFORM,
    ),
)
SEQUENCE = Statement(
    "events.sequence",
    "WITH last AS ("
    "  SELECT max(number) AS number"
    "  FROM (SELECT number FROM event_outbox ORDER BY number LIMIT :batch) AS oldest"
    "), moved AS ("
    "  DELETE FROM event_outbox USING last WHERE event_outbox.number <= last.number"
    "  RETURNING event_outbox.*"
    "), placed AS ("
    "  SELECT *, row_number() OVER (ORDER BY number) AS place, octet_length(before::text)"
    "    + octet_length(after::text) + coalesce(octet_length(data::text), 0) <= :max_bytes"
    "    AS fits"
    "  FROM moved"
    "), feed AS ("
    "  INSERT INTO event_feed (id, last_position)"
    "  SELECT 1, count(*) FROM moved HAVING count(*) > 0"
    "  ON CONFLICT (id) DO UPDATE"
    "  SET last_position = event_feed.last_position + excluded.last_position"
    "  RETURNING last_position - (SELECT count(*) FROM moved) AS given"
    ") "
    "INSERT INTO events (position, tenant_id, id, created_at, type, actor,"
    "  is_platform_actor, request_id, traceparent, before, after, data) "
    "SELECT given + place, tenant_id, id, created_at, type, actor, is_platform_actor,"
    "  request_id, traceparent, CASE WHEN fits THEN before END,"
    "  CASE WHEN fits THEN after END, CASE WHEN fits THEN data END "
    "FROM placed, feed",
    prepare=False,
)
REMOVE_OLD = Statement(
    "events.remove_old",
    text(
        "WITH last AS ("
        "  SELECT max(position) AS position"
        "  FROM (SELECT position, created_at FROM events ORDER BY position LIMIT :batch) AS oldest"
        "  WHERE created_at < :before"
        "), removed AS ("
        "  DELETE FROM events USING last WHERE events.position <= last.position RETURNING 1"
        "), feed AS ("
        "  UPDATE event_feed SET removed_position = last.position FROM last"
        "  WHERE last.position > removed_position"
        ") "
        "SELECT count(*) FROM removed"
    ).bindparams(bindparam("before", type_=Moment)),
    prepare=False,
)


def sequence(limit: int | None = None) -> int:
    """Give positions to the oldest rows of the outbox, at most ``limit``; their number.

    ``limit`` is :data:`BATCH` by default. None get one while another process holds the lock.
    """
    with transaction():
        found = TRY_LOCK.one()
        tenancy.note(tenancy.PLATFORM)
        if not found.is_mine:
            return 0
        return SEQUENCE.execute(batch=limit or BATCH, max_bytes=MAX_BYTES)


def remove_old() -> None:
    """Remove the events that are older than ``EVENT_DAYS``.

    A batch locks the row of the feed, for which the sequencer waits, so it has to be short.
    """
    before = utcnow() - timedelta(days=current_config().event_days)
    delete_in_batches(lambda limit: REMOVE_OLD.scalar(batch=limit, before=before))

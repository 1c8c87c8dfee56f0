"""Assigns positions to committed changes, truncates large events, and removes old ones.

One process at a time assigns positions: it holds a lock until its transaction ends. So positions
have no gaps, and a reader who has read up to a position never misses an event, whatever commits
late. ``audit_positions`` keeps the order for as long as the audit trail.
"""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import bindparam, func, select, text

from app.config import current_config
from app.core.clock import utcnow
from app.core.db import tenancy
from app.core.db.batches import in_batches
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
        func.set_config("enable_seqscan", "off", True),  # a plan is kept, also for a long outbox
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
    "  SELECT *, count(*) FILTER (WHERE type <> '') OVER (ORDER BY number) AS place,"
    "    octet_length(before::text)"
    "    + octet_length(after::text) + coalesce(octet_length(data::text), 0) <= :max_bytes"
    "    AS fits"
    "  FROM moved"
    "), feed AS ("
    "  INSERT INTO event_feed (id, last_position)"
    "  SELECT 1, max(place) FROM placed HAVING count(*) > 0"
    "  ON CONFLICT (id) DO UPDATE"
    "  SET last_position = event_feed.last_position + excluded.last_position"
    "  RETURNING last_position - (SELECT max(place) FROM placed) AS given"
    "), recorded AS ("
    "  INSERT INTO audit_positions (tenant_id, position, number, id, target_type, row_id,"
    "    version, updated_at)"
    "  SELECT tenant_id, given + place, number, id, target_type, placed.row_id, a.version, updated_at"
    "  FROM feed, placed, audit_target('', coalesce(data, after)) a WHERE target_type <> ''"
    "), published AS ("
    "  INSERT INTO events (position, tenant_id, id, created_at, type, actor,"
    "    is_platform_actor, request_id, traceparent, before, after, data)"
    "  SELECT given + place, tenant_id, id, created_at, type, actor, is_platform_actor,"
    "    request_id, traceparent, CASE WHEN fits THEN before END,"
    "    CASE WHEN fits THEN after END, CASE WHEN fits THEN data END"
    "  FROM placed, feed WHERE type <> ''"
    ") "
    "SELECT count(*) FROM moved",
)
ORDER_OLDER = Statement(
    "audit_positions.order_older",
    "WITH older AS ("
    "  SELECT a.tenant_id, a.id, a.created_at, a.target_type, a.target_id, a.after"
    "  FROM audit_events a, event_feed"
    "  WHERE (a.created_at, a.id) > (ordered_at, ordered_id)"
    "    AND a.created_at < now() - interval '10 minutes'"
    "    AND NOT EXISTS (SELECT FROM event_outbox w"  # the sequencer will give it its place
    "      WHERE w.tenant_id = a.tenant_id AND w.id = a.id AND w.target_type <> '')"
    "  ORDER BY a.created_at, a.id LIMIT :batch"
    "), placed AS ("
    "  SELECT o.*, coalesce(e.data, o.after) AS data, p.position IS NULL AS is_missing,"
    "    greatest(ordered_position,"
    "      max(coalesce(p.position, e.position)) OVER (ORDER BY o.created_at, o.id)) AS position,"
    "    ordered_count + row_number() OVER (ORDER BY o.created_at, o.id) AS place"
    "  FROM event_feed, older o"
    "  LEFT JOIN audit_positions p ON p.tenant_id = o.tenant_id AND p.id = o.id"
    "  LEFT JOIN events e ON e.tenant_id = o.tenant_id AND e.id = o.id"
    "), given AS ("
    "  INSERT INTO audit_positions (tenant_id, position, number, id, target_type, row_id,"
    "    version, updated_at)"
    "  SELECT tenant_id, position, place - (1::bigint << 62), id, target_type, target.*"
    "  FROM placed, audit_target(target_id, data) target WHERE is_missing"
    "), reached AS ("
    "  UPDATE event_feed SET ordered_at = created_at, ordered_id = placed.id,"
    "    ordered_position = position, ordered_count = place"
    "  FROM placed WHERE place = (SELECT max(place) FROM placed)"
    ") "
    "SELECT count(*) FROM placed",
    prepare=False,
)
REMOVE_OLD = Statement(
    "events.remove_old",
    text(
        "WITH last AS ("
        "  SELECT max(position) AS position"
        "  FROM (SELECT position, created_at FROM events ORDER BY position LIMIT :batch) AS oldest"
        "  WHERE created_at < :before AND (created_at < :unread_before"
        "    OR position <= ALL (SELECT min(position) FROM log_stream_progress"
        "      HAVING min(position) IS NOT NULL))"
        "), removed AS ("
        "  DELETE FROM events USING last WHERE events.position <= last.position RETURNING 1"
        "), feed AS ("
        "  UPDATE event_feed SET removed_position = last.position FROM last"
        "  WHERE last.position > removed_position"
        ") "
        "SELECT count(*) FROM removed"
    ).bindparams(bindparam("before", type_=Moment), bindparam("unread_before", type_=Moment)),
    prepare=False,
)

REMOVE_OLD_ORDER = Statement(
    "audit_positions.remove_old",
    text(
        "WITH oldest AS ("
        "  SELECT tenant_id, position, number, id FROM audit_positions"
        "  ORDER BY position, number LIMIT :batch"
        "), removed AS ("
        "  DELETE FROM audit_positions a USING oldest o"
        "  WHERE a.tenant_id = o.tenant_id AND a.position = o.position AND a.number = o.number"
        "    AND o.id < first_id_of(:before)"
        "  RETURNING a.tenant_id, a.position"
        "), bases AS ("
        "  DELETE FROM past_bases b USING"
        "    (SELECT tenant_id, max(position) AS position FROM removed GROUP BY tenant_id) r"
        "  WHERE b.tenant_id = r.tenant_id AND b.position < (SELECT max(k.position)"
        "    FROM past_bases k WHERE k.tenant_id = r.tenant_id AND k.position <= r.position)"
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
        moved: int = SEQUENCE.scalar(batch=limit or BATCH, max_bytes=MAX_BYTES)
        return moved


def order_older() -> None:
    """Give positions to the audit rows of earlier releases, in the order of their times.

    Each row is looked at once, ten minutes after it was written. So this can be stopped at any
    moment and continues where it was.
    """
    while True:
        with tenancy.platform_transaction():
            if not ORDER_OLDER.scalar(batch=BATCH):
                return


def remove_old() -> None:
    """Remove the events older than ``EVENT_DAYS``, and the places of audit rows that are gone.

    The newest base of each tenant before the remaining audit rows is kept. Events that a log stream
    has not read are kept for ``LOG_STREAM_DAYS`` longer. A batch locks the row of the feed, for
    which the sequencer waits, so it has to be short.
    """
    config = current_config()
    before = utcnow() - timedelta(days=config.event_days)
    limits = {"before": before, "unread_before": before - timedelta(days=config.log_stream_days)}
    in_batches(lambda limit: REMOVE_OLD.scalar(batch=limit, **limits))
    ended = utcnow() - timedelta(days=config.audit_days)
    in_batches(lambda limit: REMOVE_OLD_ORDER.scalar(batch=limit, before=ended))

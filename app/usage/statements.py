"""The SQL statements of usage. They call the functions in ``migrations/functions``."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ARRAY, BigInteger, Text, Uuid, bindparam, text

from app.core.db.models import Moment
from app.core.db.statements import Statement

CONSUME = Statement(
    "usage.consume",
    text(
        "SELECT * FROM consume_usage(CAST(:tenant_id AS uuid), CAST(:features AS text[]),"
        " CAST(:amounts AS bigint[]), CAST(:moments AS timestamptz[]), CAST(:digests AS uuid[]),"
        " :is_counted) ORDER BY place"
    ).bindparams(
        bindparam("features", type_=ARRAY(Text)),
        bindparam("amounts", type_=ARRAY(BigInteger)),
        bindparam("moments", type_=ARRAY(Moment)),
        bindparam("digests", type_=ARRAY(Uuid)),
    ),
)

# Newest periods first. A period that is over has no limit, because plans change. The counter of
# seats counts nothing.
LIST = Statement(
    "usage.list",
    "WITH current AS (SELECT feature, most, policy, used, held, starts, ends, true AS is_current"
    " FROM tenant_usage(CAST(:tenant_id AS uuid), CAST(:feature AS text))),"
    " past AS (SELECT feature, NULL::bigint, NULL, used, 0, period_start, period_end, false"
    " FROM usage_counters WHERE tenant_id = CAST(:tenant_id AS uuid) AND feature <> 'seats'"
    " AND (CAST(:feature AS text) IS NULL OR feature = CAST(:feature AS text))"
    " AND (feature, period_start) NOT IN (SELECT feature, starts FROM current))"
    " SELECT * FROM (TABLE current UNION ALL TABLE past) AS periods"
    " WHERE starts < CAST(:until AS timestamptz)"
    " AND (ends IS NULL OR ends > CAST(:since AS timestamptz))"
    ' AND (CAST(:last_feature AS text) IS NULL OR feature COLLATE "C" > :last_feature'
    " OR feature = :last_feature AND starts < CAST(:last_start AS timestamptz))"
    ' ORDER BY feature COLLATE "C", starts DESC LIMIT :limit',
    prepare=False,
)

LOCK = Statement(
    "usage.lock",
    "SELECT l.feature, l.most, l.policy, l.credits, u.used, u.held, u.starts, u.ends, true AS is_current"
    " FROM tenant_limits(CAST(:tenant_id AS uuid), :feature) l"
    " CROSS JOIN LATERAL lock_usage(CAST(:tenant_id AS uuid), l.feature, l.period) u",
)


def _deletion(table: str, condition: str, place: str) -> Statement[Any]:
    """A statement that deletes at most ``count`` rows of a table, by the index on ``place``."""
    rows = f"SELECT ctid FROM {table} WHERE {condition} ORDER BY {place} LIMIT :count"  # noqa: S608 - no input
    return Statement(f"{table}.delete_old", f"DELETE FROM {table} WHERE ctid = ANY (ARRAY({rows}))")  # noqa: S608


DELETE_OLD_KEYS = _deletion("usage_keys", "created_at < now() - interval '25 hours'", "created_at")
DELETE_OLD_HOLDS = _deletion("usage_holds", "ended_at < now() - interval '30 days'", "ended_at")
DELETE_OLD_DAYS = _deletion("usage_days", "day < now() - interval '100 days'", "day")
DELETE_OLD_PERIODS = _deletion(
    "usage_counters", "period_end < now() - :days * interval '1 day' AND held = 0", "period_end"
)

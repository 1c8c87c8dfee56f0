"""The SQL statements of usage. They call the functions in ``migrations/functions``."""

from __future__ import annotations

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
DELETE_OLD_KEYS = Statement(
    "usage_keys.delete_old",
    "DELETE FROM usage_keys WHERE (tenant_id, digest) IN (SELECT tenant_id, digest"
    " FROM usage_keys WHERE created_at < now() - interval '25 hours'"
    " ORDER BY created_at LIMIT :count)",
)
DELETE_OLD_PERIODS = Statement(
    "usage_counters.delete_old",
    "DELETE FROM usage_counters WHERE (tenant_id, feature, period_start) IN ("
    "SELECT tenant_id, feature, period_start FROM usage_counters"
    " WHERE period_end < now() - :days * interval '1 day' AND held = 0"
    " ORDER BY period_end LIMIT :count)",
)

"""The SQL statements of the sender. All run in the platform's scope."""

from __future__ import annotations

from sqlalchemy import ARRAY, Text, Uuid, any_, bindparam, func, select, text

from app.core.db.models import Moment
from app.core.db.statements import Statement
from app.events.positions import FROZEN
from app.webhooks.deliveries.models import WebhookDelivery
from app.webhooks.endpoints.models import WebhookEndpoint, WebhookEndpointState

ENSURE_FEED = Statement(
    "webhook_feed.ensure",
    "INSERT INTO webhook_feed (id, position)"
    " SELECT 1, coalesce((SELECT removed_position FROM event_feed), 0)"
    " ON CONFLICT (id) DO NOTHING",
)

# Add the deliveries of the events after the feed's position, and move the position: both or none,
# so each event gets its deliveries exactly once. The lock on the feed's row lets one sender at a
# time do it; PostgreSQL ends its transaction if it is frozen meanwhile. Of the events up to
# `last_position` none is missing, because positions have no gaps. The index finds the endpoints of
# the event's tenant and of the platform; the function alone would look at every endpoint for every
# event. An endpoint gets no event of before it existed; the seconds are for transactions that were
# open then, and for clocks that differ.
ADD_DELIVERIES = Statement(
    "webhook_deliveries.add",
    "WITH span AS ("
    "  SELECT f.position AS first, least(f.position + :batch, e.last_position) AS last"
    "  FROM webhook_feed f, event_feed e WHERE f.position < e.last_position"
    "  FOR UPDATE OF f SKIP LOCKED"
    "), moved AS ("
    "  UPDATE webhook_feed SET position = span.last FROM span"
    "), added AS ("
    "  INSERT INTO webhook_deliveries (tenant_id, id, created_at, endpoint_id, event_id, type,"
    "    status, attempts, next_attempt_at)"
    "  SELECT p.tenant_id, gen_random_uuid(), now(), p.id, e.id, e.type, 'pending', 0, now()"
    "  FROM span"
    # The LIMIT lets PostgreSQL see that these are few of all events.
    "  CROSS JOIN LATERAL (SELECT tenant_id, id, type, created_at FROM events"
    "    WHERE position > span.first AND position <= span.last ORDER BY position LIMIT :batch) e"
    "  JOIN webhook_endpoints p ON p.is_active"
    "    AND p.created_at < e.created_at + interval '10 seconds'"
    "    AND p.tenant_id IN (e.tenant_id, '00000000-0000-0000-0000-000000000000')"
    "    AND webhook_endpoint_gets(p.tenant_id, p.types, e.tenant_id, e.type)"
    "  ON CONFLICT (tenant_id, endpoint_id, event_id) DO NOTHING"
    ") "
    "SELECT last - first, set_config('idle_in_transaction_session_timeout', :frozen, true)"
    " FROM span",
    prepare=False,
)

# Only the process that holds the lock claims. PostgreSQL ends the transaction of a process that is
# frozen meanwhile. The commit does not wait for the disk: what a crash of PostgreSQL undoes is only
# made again.
TRY_LOCK = Statement(
    "webhook_deliveries.try_lock",
    select(
        func.pg_try_advisory_xact_lock(7_021_119).label("is_mine"),
        func.set_config("synchronous_commit", "off", True),
        func.set_config("idle_in_transaction_session_timeout", FROZEN, True),
    ),
)

# An endpoint may have `:together` deliveries at a time, one if it is failing, and `rate_limit` attempts
# in a second; all endpoints of a tenant, or of the platform, `:of_owner` at a time. At most `:most_slow`
# are claimed of the endpoints in `:slow`. The deliveries of a suspended tenant wait.
CLAIM = Statement(
    "webhook_deliveries.claim",
    text(
        "WITH queued AS ("
        "  SELECT q.tenant_id, q.endpoint_id, ("
        "    SELECT count(*) FROM webhook_deliveries d"
        "    WHERE d.tenant_id = q.tenant_id AND d.endpoint_id = q.endpoint_id"
        "      AND d.status = 'sending' AND d.next_attempt_at > now()) AS sending"
        "  FROM queued_webhook_endpoints() q"
        "), able AS ("
        "  SELECT p.tenant_id, p.id, p.id = ANY (CAST(:slow AS uuid[])) AS is_slow,"
        "    sum(queued.sending) OVER (PARTITION BY p.tenant_id) AS of_owner, least("
        "    CASE WHEN s.failing_since IS NULL THEN :together ELSE 1 END - queued.sending,"
        "    p.rate_limit - CASE WHEN s.window_start > now() - interval '1 second'"
        "      THEN s.window_count ELSE 0 END) AS free"
        "  FROM queued"
        "  JOIN webhook_endpoints p ON p.tenant_id = queued.tenant_id AND p.id = queued.endpoint_id"
        "  JOIN webhook_endpoint_states s ON s.tenant_id = p.tenant_id AND s.endpoint_id = p.id"
        "  LEFT JOIN tenants t ON t.id = p.tenant_id"
        "  WHERE (p.is_active OR p.disabled_reason = 'untested') AND coalesce(t.is_active, true)"
        "), ranked AS ("
        "  SELECT d.*, able.is_slow, able.of_owner"
        "    + row_number() OVER (PARTITION BY d.tenant_id ORDER BY d.next_attempt_at) AS place"
        "  FROM able CROSS JOIN LATERAL ("
        "    SELECT d.tenant_id, d.id, d.next_attempt_at FROM webhook_deliveries d"
        "    WHERE d.tenant_id = able.tenant_id AND d.endpoint_id = able.id"
        "      AND d.next_attempt_at <= now()"
        "    ORDER BY d.next_attempt_at LIMIT greatest(able.free, 0)) d"
        "), due AS ("
        "  SELECT tenant_id, id FROM ("
        "    SELECT *, row_number() OVER (PARTITION BY is_slow ORDER BY next_attempt_at) AS slow_place"
        "    FROM ranked WHERE place <= :of_owner) r"
        "  WHERE NOT is_slow OR slow_place <= :most_slow"
        "  ORDER BY next_attempt_at LIMIT :most"
        "), locked AS ("
        "  SELECT d.tenant_id, d.id FROM webhook_deliveries d JOIN due USING (tenant_id, id)"
        "  FOR UPDATE OF d SKIP LOCKED"
        "), claimed AS ("
        "  UPDATE webhook_deliveries d SET status = 'sending', attempts = d.attempts + 1,"
        "    attempted_at = now(), next_attempt_at = now() + :lease * interval '1 second'"
        "  FROM locked WHERE d.tenant_id = locked.tenant_id AND d.id = locked.id"
        "  RETURNING d.tenant_id, d.endpoint_id, d.id"
        "), counted AS ("
        "  UPDATE webhook_endpoint_states s SET"
        "    window_start = CASE WHEN s.window_start > now() - interval '1 second'"
        "      THEN s.window_start ELSE now() END,"
        "    window_count = c.number + CASE WHEN s.window_start > now() - interval '1 second'"
        "      THEN s.window_count ELSE 0 END"
        "  FROM (SELECT tenant_id, endpoint_id, count(*) AS number FROM claimed"
        "    GROUP BY tenant_id, endpoint_id) c"
        "  JOIN webhook_endpoints p ON p.tenant_id = c.tenant_id AND p.id = c.endpoint_id"
        "  WHERE s.tenant_id = c.tenant_id AND s.endpoint_id = c.endpoint_id"
        "    AND p.rate_limit IS NOT NULL"
        ") "
        "SELECT id::text FROM claimed"
    ).bindparams(bindparam("slow", type_=ARRAY(Uuid))),
    prepare=False,
)

LOAD = Statement(
    "webhook_deliveries.load",
    select(WebhookDelivery, WebhookEndpoint, WebhookEndpointState)
    .join(
        WebhookEndpoint,
        (WebhookEndpoint.tenant_id == WebhookDelivery.tenant_id)
        & (WebhookEndpoint.id == WebhookDelivery.endpoint_id),
    )
    .join(
        WebhookEndpointState,
        (WebhookEndpointState.tenant_id == WebhookEndpoint.tenant_id)
        & (WebhookEndpointState.endpoint_id == WebhookEndpoint.id),
    )
    .where(WebhookDelivery.id == any_(bindparam("ids", type_=ARRAY(Uuid)))),
)

# `attempted_at` names the attempt: a delivery that another sender has claimed since is not changed.
RECORD = Statement(
    "webhook_deliveries.record",
    text(
        "WITH ended AS ("
        "  UPDATE webhook_deliveries d SET status = r.status, next_attempt_at = r.next_attempt_at,"
        "    response_code = r.response_code, response_body = r.response_body, error = r.error,"
        "    duration_ms = r.duration_ms"
        "  FROM unnest(CAST(:ids AS uuid[]), CAST(:attempts_at AS timestamptz[]),"
        "    CAST(:statuses AS text[]), CAST(:next_attempts_at AS timestamptz[]),"
        "    CAST(:codes AS smallint[]), CAST(:bodies AS text[]), CAST(:errors AS text[]),"
        "    CAST(:durations AS bigint[])) AS r (id, attempted_at, status, next_attempt_at,"
        "    response_code, response_body, error, duration_ms)"
        "  WHERE d.id = r.id AND d.attempted_at = r.attempted_at AND d.status = 'sending'"
        "  RETURNING d.tenant_id, d.endpoint_id, d.status = 'succeeded' AS has_succeeded"
        "), summary AS ("
        "  SELECT tenant_id, endpoint_id, bool_or(has_succeeded) AS has_succeeded FROM ended"
        "  GROUP BY tenant_id, endpoint_id"
        ") "
        "UPDATE webhook_endpoint_states s SET failing_since ="
        "  CASE WHEN NOT summary.has_succeeded THEN coalesce(s.failing_since, now()) END "
        "FROM summary WHERE s.tenant_id = summary.tenant_id AND s.endpoint_id = summary.endpoint_id"
        "  AND (s.failing_since IS NULL) <> summary.has_succeeded"
    ).bindparams(
        bindparam("ids", type_=ARRAY(Uuid)),
        bindparam("attempts_at", type_=ARRAY(Moment)),
        bindparam("next_attempts_at", type_=ARRAY(Moment)),
        bindparam("statuses", type_=ARRAY(Text)),
    ),
    prepare=False,
)

FIND_FAILING = Statement(
    "webhook_endpoint_states.find_failing",
    select(WebhookEndpointState.endpoint_id).where(
        WebhookEndpointState.tenant_id == any_(bindparam("tenant_ids", type_=ARRAY(Uuid))),
        WebhookEndpointState.endpoint_id == any_(bindparam("ids", type_=ARRAY(Uuid))),
        WebhookEndpointState.failing_since < bindparam("before", type_=Moment),
    ),
)

DELETE_OLD = Statement(
    "webhook_deliveries.delete_old",
    text(
        "DELETE FROM webhook_deliveries WHERE (tenant_id, id) IN ("
        "  SELECT d.tenant_id, d.id FROM webhook_deliveries d WHERE d.created_at < :before"
        "  LIMIT :batch)"
    ).bindparams(bindparam("before", type_=Moment)),
    prepare=False,
)
DELETE_ORPHANS = Statement(
    "webhook_deliveries.delete_orphans",
    "DELETE FROM webhook_deliveries WHERE (tenant_id, id) IN ("
    "  SELECT d.tenant_id, d.id FROM queued_webhook_endpoints() queued"
    "  JOIN webhook_deliveries d ON d.tenant_id = queued.tenant_id"
    "    AND d.endpoint_id = queued.endpoint_id AND d.next_attempt_at IS NOT NULL"
    "  WHERE NOT EXISTS (SELECT FROM webhook_endpoints p"
    "    WHERE p.tenant_id = queued.tenant_id AND p.id = queued.endpoint_id)"
    "  LIMIT :batch)",
    prepare=False,
)

RESEND = Statement(
    "webhook_deliveries.resend",
    "UPDATE webhook_deliveries SET status = 'pending', attempts = 0, next_attempt_at = now()"
    " WHERE tenant_id = CAST(:tenant_id AS uuid) AND id = CAST(:id AS uuid)"
    " AND status <> 'sending'",
)
# Failed deliveries and those that wait for another attempt are due now. Events since the endpoint's
# creation that have no delivery get one, up to the position whose events have theirs. A tenant's are
# found by the index of its events.
RECOVER = Statement(
    "webhook_deliveries.recover",
    text(
        "WITH failed AS ("
        "  SELECT d.tenant_id, d.id FROM webhook_deliveries d"
        "  WHERE d.tenant_id = CAST(:tenant_id AS uuid) AND d.endpoint_id = CAST(:id AS uuid)"
        "    AND d.created_at >= :since AND d.body IS NULL AND (d.status = 'failed'"
        "      OR d.status = 'pending' AND d.next_attempt_at > now()) LIMIT :most"
        "), resent AS ("
        "  UPDATE webhook_deliveries d SET status = 'pending', attempts = 0,"
        "    next_attempt_at = now()"
        "  FROM failed WHERE d.tenant_id = failed.tenant_id AND d.id = failed.id RETURNING d.id"
        "), missed AS ("
        "  INSERT INTO webhook_deliveries (tenant_id, id, created_at, endpoint_id, event_id, type,"
        "    status, attempts, next_attempt_at)"
        "  SELECT p.tenant_id, gen_random_uuid(), now(), p.id, e.id, e.type, 'pending', 0, now()"
        "  FROM webhook_endpoints p JOIN events e"
        "    ON e.created_at >= greatest(:since, p.created_at)"
        "    AND e.id >= CAST(:first_id AS uuid)"
        "    AND e.position <= (SELECT position FROM webhook_feed)"
        "    AND (e.tenant_id = CAST(:tenant_id AS uuid)"
        "      OR CAST(:tenant_id AS uuid) = '00000000-0000-0000-0000-000000000000')"
        "    AND webhook_endpoint_gets(p.tenant_id, p.types, e.tenant_id, e.type)"
        "  WHERE p.tenant_id = CAST(:tenant_id AS uuid) AND p.id = CAST(:id AS uuid)"
        "    AND NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.tenant_id = p.tenant_id"
        "      AND d.endpoint_id = p.id AND d.event_id = e.id)"
        "  ORDER BY e.position LIMIT :most"
        "  ON CONFLICT (tenant_id, endpoint_id, event_id) DO NOTHING RETURNING id"
        ") "
        "SELECT (SELECT count(*) FROM resent) AS resent, (SELECT count(*) FROM missed) AS missed"
    ).bindparams(bindparam("since", type_=Moment)),
    prepare=False,
)

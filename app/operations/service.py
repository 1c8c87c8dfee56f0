"""Readiness, and what `/metrics` tells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from hmac import compare_digest
from pathlib import Path
from typing import Any

import psycopg2
from flask import current_app
from redis.exceptions import RedisError
from sqlalchemy import ARRAY, Text, bindparam, text
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.config import current_config
from app.core.db.replicas.reading import EXTENSION
from app.core.db.replicas.watch import Replicas, State
from app.core.db.statements import Statement
from app.core.db.transactions import current_transaction
from app.core.errors import Unauthenticated
from app.core.jobs.queues import connection

DATABASE_FAULTS = (psycopg2.Error, PoolTimeout)
EXPIRING_DAYS = 14
MOST_WAITING = 100_000  # events
REVISION = re.compile(r'^revision = "(.+)"$', re.MULTILINE)
FIND_MIGRATION = Statement(
    "operations.find_migration", text("SELECT version_num FROM alembic_version")
)
# Of the states pending and failed; one without events is absent. One SELECT per state, so that each
# reads only the partial index of its state.
INBOX_DEPTH = Statement(
    "operations.inbox_depth",
    text(
        " UNION ALL ".join(
            "SELECT status, count(*) AS events,"  # noqa: S608
            " extract(epoch FROM now() - min(created_at))::float AS oldest_seconds "
            f"FROM webhook_events WHERE status = '{state}' GROUP BY status"
            for state in ("pending", "failed")
        )
    ),
)
# How many connections the role has open, how many others than this one are in use, and how many
# PostgreSQL allows to all roles together, except superusers. PostgreSQL is asked, because only it
# knows the connections of jobs and of killed processes.
CONNECTIONS = Statement(
    "operations.connections",
    text(
        "SELECT count(*) AS open,"
        " count(*) FILTER (WHERE state <> 'idle' AND pid <> pg_backend_pid()) AS in_use,"
        " current_setting('max_connections')::int"
        " - current_setting('superuser_reserved_connections')::int AS allowed"
        " FROM pg_stat_activity"
        " WHERE usename = current_user AND datname = current_database()"
    ),
)
EXPIRING_KEYS = Statement(
    "operations.expiring_keys",
    text(
        "SELECT count(*) FROM api_keys WHERE revoked_at IS NULL"
        " AND expires_at BETWEEN now() AND now() + :days * interval '1 day'"
    ),
)
# The plans of subscriptions are found by one search in the index each.
FIND_UNKNOWN_PLANS = Statement(
    "operations.find_unknown_plans",
    text(
        "WITH RECURSIVE named AS ("
        "(SELECT min(plan_name) AS plan_name FROM subscriptions WHERE status_class <> 'ended')"
        " UNION ALL SELECT (SELECT min(s.plan_name) FROM subscriptions s"
        " WHERE s.status_class <> 'ended' AND s.plan_name > named.plan_name)"
        " FROM named WHERE named.plan_name IS NOT NULL)"
        " SELECT plan_name FROM (TABLE named UNION SELECT plan_name FROM tenants) AS every"
        " WHERE plan_name <> :default_plan"
        " AND NOT EXISTS (SELECT FROM plan_presets p WHERE p.name = every.plan_name)"
    ),
)
COUNT_TENANTS = Statement(
    "operations.count_tenants_of_plans",
    text(
        "SELECT plan_name, count(*) AS tenants FROM ("
        "SELECT id, plan_name FROM tenants WHERE plan_name = ANY (:names)"
        " UNION SELECT tenant_id, plan_name FROM subscriptions"
        " WHERE plan_name = ANY (:names) AND status_class <> 'ended') AS every"
        " GROUP BY plan_name ORDER BY tenants DESC, plan_name"
    ).bindparams(bindparam("names", type_=ARRAY(Text))),
    prepare=False,
)

EVENT_BACKLOG = Statement(
    "operations.event_backlog",
    text(
        "SELECT (SELECT last_position FROM event_feed) AS sequenced,"
        " count(*) AS waiting, extract(epoch FROM now() - min(created_at))::float AS seconds"
        " FROM (SELECT created_at FROM event_outbox ORDER BY number LIMIT :most) AS oldest"
    ),
)
# A counter or a tenant can be over a limit only if it is over the preset's or has an override. Of
# these, the database function `tenant_usage` knows the limit in force.
_OVER_LIMITS = """
WITH limits AS (
    SELECT p.name, flag ->> 'flag_key' AS feature, (flag ->> 'default_value')::bigint AS most
    FROM plan_presets p CROSS JOIN LATERAL json_array_elements(p.flags) flag
    WHERE flag ->> 'flag_type' = 'limit'
), candidates AS (
    SELECT t.id, t.slug, l.feature
    FROM limits l
    JOIN tenants t ON t.plan_name = l.name
    JOIN usage_counters c ON c.tenant_id = t.id AND c.feature = l.feature
        AND (c.period_end IS NULL OR c.period_end > now())
    WHERE l.feature <> 'seats' AND (l.most > -1 AND c.used > l.most OR EXISTS (
        SELECT FROM feature_overrides o WHERE o.tenant_id = t.id AND o.flag_key = l.feature
    ))
    UNION  -- a counter of another period can be there too
    SELECT t.id, t.slug, l.feature
    FROM limits l
    JOIN tenants t ON t.plan_name = l.name
    JOIN memberships m ON m.tenant_id = t.id AND m.is_active
    WHERE l.feature = 'seats'
    GROUP BY t.id, l.feature, l.most
    HAVING l.most > -1 AND count(*) > l.most OR EXISTS (
        SELECT FROM feature_overrides o WHERE o.tenant_id = t.id AND o.flag_key = l.feature
    )
), exceeded AS (
    SELECT c.slug, c.feature
    FROM candidates c CROSS JOIN LATERAL tenant_usage(c.id, c.feature) u
    WHERE u.most > -1 AND u.used > u.most
)
"""
COUNT_OVER_LIMITS = Statement(
    "operations.count_over_limits",
    text(
        f"{_OVER_LIMITS} SELECT count(DISTINCT slug) FILTER (WHERE feature <> 'seats') AS usage,"  # noqa: S608
        " count(DISTINCT slug) FILTER (WHERE feature = 'seats') AS seats FROM exceeded"
    ),
    prepare=False,
)
# The tenants that use more than their limits allow.
LIST_OVER_LIMITS = Statement(
    "operations.list_over_limits",
    text(
        f"{_OVER_LIMITS} SELECT slug, array_agg(feature ORDER BY feature) AS features"  # noqa: S608
        " FROM exceeded GROUP BY slug ORDER BY slug LIMIT :limit"
    ),
    prepare=False,
)
OVERDUE_TRIALS = Statement(
    "operations.overdue_trials",
    text(
        "SELECT count(*) FROM plan_assignments WHERE until < now() - :seconds * interval '1 second'"
    ),
)
OVERDUE_SECONDS = 60  # within which a job ends the assigned plans that are over

# Unfinished deliveries by what their endpoints are: failing since the last success, paused (not
# active, or of a suspended tenant), or healthy. Seconds since the oldest of them was due.
DELIVERY_BACKLOG = Statement(
    "operations.delivery_backlog",
    text(
        "SELECT CASE WHEN p.id IS NULL OR NOT p.is_active OR NOT coalesce(t.is_active, true)"
        "    THEN 'paused' WHEN s.failing_since IS NULL THEN 'healthy' ELSE 'failing' END AS class,"
        "  sum(d.waiting)::bigint AS waiting,"
        "  greatest(0, extract(epoch FROM now() - min(d.oldest)))::float AS seconds"
        " FROM queued_webhook_endpoints() q"
        " LEFT JOIN webhook_endpoints p ON p.tenant_id = q.tenant_id AND p.id = q.endpoint_id"
        " LEFT JOIN webhook_endpoint_states s ON s.tenant_id = p.tenant_id AND s.endpoint_id = p.id"
        " LEFT JOIN tenants t ON t.id = q.tenant_id"
        " CROSS JOIN LATERAL (SELECT count(*) AS waiting, min(next_attempt_at) AS oldest"
        "   FROM (SELECT next_attempt_at FROM webhook_deliveries d"
        "     WHERE d.tenant_id = q.tenant_id AND d.endpoint_id = q.endpoint_id"
        "       AND d.next_attempt_at IS NOT NULL"
        "     ORDER BY d.next_attempt_at LIMIT :most) AS first) d"
        " GROUP BY class"
    ),
    prepare=False,
)
# The endpoints of the backlog's class `failing`, those that have failed longest first. `slug` is the
# tenant's; None: the platform's.
FAILING_ENDPOINTS = Statement(
    "operations.failing_endpoints",
    text(
        "SELECT p.id, t.slug, s.failing_since FROM queued_webhook_endpoints() q"
        " JOIN webhook_endpoints p ON p.tenant_id = q.tenant_id AND p.id = q.endpoint_id"
        " JOIN webhook_endpoint_states s ON s.tenant_id = p.tenant_id AND s.endpoint_id = p.id"
        " LEFT JOIN tenants t ON t.id = q.tenant_id"
        " WHERE s.failing_since IS NOT NULL AND p.is_active AND coalesce(t.is_active, true)"
        " ORDER BY s.failing_since, p.id LIMIT :limit"
    ),
    prepare=False,
)
SENDER_LAG = Statement(
    "operations.sender_lag",
    text(
        "SELECT greatest(0, e.last_position - coalesce(f.position, e.removed_position))"
        " FROM event_feed e LEFT JOIN webhook_feed f ON true"
        " WHERE EXISTS (SELECT FROM webhook_endpoints)"
    ),
)


def readiness() -> dict[str, str]:
    """``ok`` or a short description of the fault, for each check.

    Requests need the database and the migrations. Without Redis, or without some of the replicas,
    they are answered: ``degraded``.
    """
    return {**_database(), **_replicas(), "redis": _redis()}


def _database() -> dict[str, str]:
    try:
        version = FIND_MIGRATION.scalar()
    except DATABASE_FAULTS:
        current_transaction().close()  # the commit at the request's end then sends nothing
        return {"database": "unavailable", "migrations": "unknown"}
    return {"database": "ok", "migrations": "ok" if is_migrated(version) else f"at {version}"}


def _replicas() -> dict[str, str]:
    """Whether this process reads from all standbys; empty where there are no replicas."""
    found = replicas()
    if found is None:
        return {}
    found.start()
    is_degraded = any(each.state in (State.LAGGING, State.UNAVAILABLE) for each in found.all)
    return {"replicas": "degraded" if is_degraded else "ok"}


def replicas() -> Replicas | None:
    """The replicas, as this process sees them; None where there are none."""
    return current_app.extensions.get(EXTENSION)


def _redis() -> str:
    try:
        connection().ping()
    except RedisError:
        return "degraded"
    return "ok"


def check_metrics_token(given: str) -> None:
    """Raise Unauthenticated where ``METRICS_TOKEN`` is set and ``given`` is another token."""
    token = current_config().metrics_token
    if token and not compare_digest(token.encode(), given.encode("latin-1", "replace")):
        raise Unauthenticated(reason="metrics_token_invalid")


def event_backlog() -> tuple[int, int, float]:
    """How many events have positions, how many wait for one, and seconds that the oldest waits.

    In the scope of the platform. At most :data:`MOST_WAITING` are counted.
    """
    found = EVENT_BACKLOG.one(most=MOST_WAITING)
    return found.sequenced or 0, found.waiting, max(found.seconds or 0.0, 0.0)


def delivery_backlog() -> dict[str, tuple[int, float]]:
    """By class of endpoints: unfinished deliveries, and seconds since the oldest was due.

    In the scope of the platform. Of each endpoint at most :data:`MOST_WAITING` are counted.
    """
    found = {row[0]: (row.waiting, row.seconds) for row in DELIVERY_BACKLOG.all(most=MOST_WAITING)}
    return {name: found.get(name, (0, 0.0)) for name in ("healthy", "failing", "paused")}


def sender_lag() -> int:
    """How many events have positions and no deliveries yet; 0 where there are no endpoints."""
    return SENDER_LAG.scalar() or 0


def unknown_plans() -> Sequence[Any]:
    """``plan_name`` and number of ``tenants`` for each plan without a preset, most tenants first.

    A tenant counts if it has the plan, or a subscription that names it and has not ended. The
    default plan needs no preset.
    """
    names = FIND_UNKNOWN_PLANS.scalars(default_plan=current_config().default_plan)
    return COUNT_TENANTS.all(names=names) if names else []


def count_over_limits() -> dict[str, int]:
    """How many tenants use more than a limit allows, and how many have more members than seats.

    It reads all counters and memberships; a million counters take about a second.
    """
    found: dict[str, int] = COUNT_OVER_LIMITS.one()._asdict()
    return found


def overdue_trials() -> int:
    """How many assigned plans ended :data:`OVERDUE_SECONDS` ago and no job has ended."""
    count: int = OVERDUE_TRIALS.scalar(seconds=OVERDUE_SECONDS)
    return count


def is_migrated(version: str | None) -> bool:
    """Whether a database at ``version`` has all migrations of this release.

    Migrations only add, so those of a later release do no harm: this one still runs while the
    next is started, and again if the next is taken back.
    """
    newest = newest_migration()
    return version is not None and newest is not None and version >= newest  # they are numbered


@cache
def newest_migration() -> str | None:
    """The revision of the newest migration file; None if there is no file."""
    versions = Path(current_app.root_path).parent / "migrations" / "versions"
    newest = max(versions.glob("[0-9]*_*.py"), default=None)  # they are numbered
    found = newest and REVISION.search(newest.read_text())
    return found[1] if found else None

"""``python -m benchmarks history``: reads as of an earlier time among millions of audit rows.

The audit trail has the creation of each row of the data set, and changes of users. Beside the data
set there are three larger tenants: one of 1,000 users, one of 1,000 users with a tenth of all
changes, and one of 100,000 users. The bases are written by the service.
"""

from __future__ import annotations

import contextlib
import io
import random
import re
import statistics
import time
from contextlib import closing
from typing import Any

from flask.testing import FlaskClient

from app import create_app
from app.core.db.statements import Statement
from app.events import positions
from app.history import bases
from benchmarks import calls, events
from benchmarks.stage import Stage

READS, LISTS = 200, 20
ROUNDS, REQUESTS = 60, 20
TENANTS = {"1,000 users": 1_000, "1,000 users, often changed": 1_000, "100,000 users": 100_000}
MONTHS = 12
ADD_TENANT = """
INSERT INTO tenants SELECT (jsonb_populate_record(t, jsonb_build_object('id', %(id)s::text,
    'idp_org_id', %(slug)s::text, 'slug', %(slug)s::text))).*
FROM tenants t WHERE slug = 'company-0';
INSERT INTO users SELECT (jsonb_populate_record(u, jsonb_build_object('id', gen_random_uuid(),
    'tenant_id', %(id)s::text, 'idp_org_id', %(slug)s::text, 'idp_user_id', %(slug)s::text || '|' || n,
    'email', n || '@' || %(slug)s::text || '.example', 'email_key', n || '@' || %(slug)s::text || '.example'))).*
FROM users u, generate_series(1, %(users)s) n
WHERE u.id = (SELECT id FROM users WHERE idp_org_id = 'org_company_0' LIMIT 1);
"""
PREPARE = """
SET synchronous_commit = off;
SET maintenance_work_mem = '1GB';
CREATE FUNCTION pg_temp.month(number integer) RETURNS timestamptz LANGUAGE sql STABLE AS
    $$SELECT date_trunc('month', now(), 'UTC') + number * interval '1 month'$$;
CREATE FUNCTION pg_temp.v7(moment timestamptz, number bigint) RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT (left(first_id_of(moment)::text, 14) || '7' || lpad(to_hex(number % 4096), 3, '0')
        || '-8' || lpad(to_hex(number), 15, '0'))::uuid
$$;
CREATE TEMP TABLE made AS SELECT row_number() OVER () - 1 AS number, * FROM (
    SELECT id AS tenant_id, id, 'tenant' AS kind, row_to_json(tenants) AS state FROM tenants
    UNION ALL SELECT tenant_id, id, 'subscription', row_to_json(subscriptions) FROM subscriptions
    UNION ALL SELECT tenant_id, id, 'user', row_to_json(users) FROM users
    UNION ALL SELECT tenant_id, id, 'membership', row_to_json(memberships) FROM memberships
) rows;
CREATE TEMP TABLE people AS
SELECT idp_org_id = '{hot}' AS is_hot, tenant_id, id,
    row_number() OVER (PARTITION BY idp_org_id = '{hot}' ORDER BY id) - 1 AS number,
    count(*) OVER (PARTITION BY idp_org_id = '{hot}') AS count
FROM users;
ANALYZE;
CREATE TEMP TABLE indexes AS SELECT indexdef FROM pg_indexes
WHERE tablename = 'audit_positions' AND indexname <> 'pk_audit_positions';
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT substring(indexdef FROM 'INDEX (\\w+)') FROM indexes LOOP
        EXECUTE 'DROP INDEX ' || name;
    END LOOP;
END
$$;
DELETE FROM audit_events;
DELETE FROM audit_positions;
DELETE FROM event_outbox;
DROP TABLE partitions.audit_events_first;
"""
# The indexes are made when the month is attached, which is quicker than with the rows.
ADD_MONTH = """
CREATE TEMP TABLE month AS
SELECT n, m.moment, pg_temp.v7(m.moment, n) AS id, c.*
FROM generate_series({rows}::bigint * ({months} - 1 - {month}), {rows}::bigint * ({months} - {month}) - 1) n
CROSS JOIN LATERAL (SELECT pg_temp.month(-{month}) + (n % {rows})
    * ((least(now(), pg_temp.month(1 - {month})) - pg_temp.month(-{month})) / {rows}) AS moment) m
JOIN LATERAL (
    SELECT tenant_id, id AS row_id, kind, kind || '.created' AS action, 1 AS version, state AS after
    FROM made WHERE number = n
) c ON true WHERE n < (SELECT count(*) FROM made)
UNION ALL
SELECT n, m.moment, pg_temp.v7(m.moment, n), p.tenant_id, p.id, 'user', 'user.updated',
    2 + n / p.count / CASE WHEN p.is_hot THEN 10 ELSE 1 END, json_build_object('first_name', 'First' || n)
FROM generate_series({rows}::bigint * ({months} - 1 - {month}), {rows}::bigint * ({months} - {month}) - 1) n
CROSS JOIN LATERAL (SELECT pg_temp.month(-{month}) + (n % {rows})
    * ((least(now(), pg_temp.month(1 - {month})) - pg_temp.month(-{month})) / {rows}) AS moment) m
JOIN people p ON p.is_hot = (n % 10 = 0) AND p.number = CASE
    WHEN n % 10 = 0 THEN n / 10 % (SELECT max(count) FROM people WHERE is_hot)
    ELSE n * 7919 % (SELECT max(count) FROM people WHERE NOT is_hot) END
WHERE n >= (SELECT count(*) FROM made);
CREATE TABLE partitions.audit_events_{month} (LIKE audit_events);
INSERT INTO partitions.audit_events_{month} (tenant_id, id, created_at, actor, action, target_type,
    target_id, before, after, request_id)
SELECT tenant_id, id, moment, 'system:idp', action, kind, row_id::text,
    CASE WHEN version > 1 THEN json_build_object('first_name', 'First') ELSE '{{}}' END, after,
    'request-' || n
FROM month;
INSERT INTO audit_positions (tenant_id, position, number, id, row_id, version, updated_at, target_type)
SELECT tenant_id, n + 1, n + 1, id, row_id, version, moment, kind FROM month;
ALTER TABLE audit_events ATTACH PARTITION partitions.audit_events_{month}
    FOR VALUES FROM (first_id_of(pg_temp.month(-{month}))) TO (first_id_of(pg_temp.month(1 - {month})));
DROP TABLE month;
"""
FINISH = """
DO $$
DECLARE
    definition text;
BEGIN
    FOR definition IN SELECT indexdef FROM indexes LOOP
        EXECUTE definition;
    END LOOP;
END
$$;
DELETE FROM event_feed;
INSERT INTO event_feed (id, last_position, ordered_position, ordered_at, ordered_id)
SELECT 1, position, position, updated_at, id FROM audit_positions ORDER BY position DESC LIMIT 1;
"""
SIZES = """
SELECT (SELECT count(*) FROM audit_positions), pg_total_relation_size('audit_positions'),
    (SELECT count(*) FROM past_bases), pg_total_relation_size('past_bases'),
    (SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('audit_events') WHERE isleaf)
"""
PICK = """
SELECT a.target_id, a.created_at FROM (
    SELECT tenant_id, id FROM audit_positions
    WHERE tenant_id = %(tenant_id)s AND position >= %(position)s AND target_type = 'user'
    ORDER BY tenant_id, position, number LIMIT 1
) p JOIN audit_events a ON a.tenant_id = p.tenant_id AND a.id = p.id
"""


def report(stage: Stage, rows: int) -> str:
    """All figures, as text."""
    started = time.monotonic()
    _load(stage, rows // MONTHS)
    loaded = time.monotonic() - started
    calls.add_platform_admin(stage)
    with contextlib.redirect_stderr(io.StringIO()):  # the log
        app = create_app(stage.environment)
        client = app.test_client()
        before = events.spent(stage)
        started = time.monotonic()
        with app.app_context():
            bases.add_due()
        written = time.monotonic() - started
        cost = (events.spent(stage) - before) / rows
        stage_sizes = _query(stage, SIZES)[0]
        _query(stage, "VACUUM (ANALYZE)")
        times = _reads(stage, client, rows)
        change = _change(stage, client, cost)
    changes, order, states, size, trail = stage_sizes
    return "\n".join((
        f"{changes:,} audit rows, loaded in {loaded:.0f} s; {states:,} rows in bases, written in"
        f" {written:.0f} s ({cost * 1e6:.0f} µs of processor time for each change).",
        f"Bytes for each change: {trail / changes:.0f} in the trail, {order / changes:.0f} for its"
        f" order, {size / changes:.0f} in bases.",
        "",
        "| as of a random time, ms | p50 | p99 | processor time |",
        "|---|--:|--:|--:|",
        *times,
        "",
        change,
    ))  # fmt: skip


def _load(stage: Stage, rows: int) -> None:
    names = {name: f"large-{number}" for number, name in enumerate(TENANTS)}
    with closing(stage.connect()) as session:
        session.autocommit = True
        with session.cursor() as database:
            for number, (name, users) in enumerate(TENANTS.items()):
                values = {"id": f"0000000{number}-0000-7000-8000-000000000001", "users": users}
                database.execute(ADD_TENANT, {**values, "slug": names[name]})
            database.execute(PREPARE.replace("{hot}", "large-1"))
            for month in range(MONTHS - 1, -1, -1):
                database.execute(ADD_MONTH.format(month=month, rows=rows, months=MONTHS))
            database.execute(FINISH)
            database.execute("VACUUM (ANALYZE)")
            database.execute("CHECKPOINT")


def _reads(stage: Stage, client: FlaskClient, rows: int) -> list[str]:
    """Lines of a table: one row, and a list, of each tenant."""
    headers = calls.credential(stage, calls.PLATFORM_SUBJECT)
    found, lines = random.Random(1), []
    slugs = {"100 users": "company-7"} | {
        name: f"large-{number}" for number, name in enumerate(TENANTS)
    }
    for name, slug in slugs.items():
        ((tenant_id,),) = _query(stage, "SELECT id FROM tenants WHERE slug = %(slug)s", slug=slug)
        moments = [
            _query(stage, PICK, tenant_id=tenant_id, position=found.randrange(rows * 9 // 10))[0]
            for _ in range(READS + 5)
        ]
        one = [f"/v1/users/{row_id}" for row_id, _ in moments]
        of_tenant = {"tenant_id": tenant_id, "limit": 100}
        for title, paths, query in (
            (f"a user of a tenant of {name}", one, {}),
            (f"100 users of a tenant of {name}", ["/v1/users"] * (LISTS + 5), of_tenant),
        ):
            requests = [
                (path, {**query, "as_of": moment.isoformat()})
                for path, (_, moment) in zip(paths, moments, strict=False)
            ]
            _times(client, headers, requests[:5])
            before = events.spent(stage)
            times = sorted(_times(client, headers, requests[5:]))
            cost = (events.spent(stage) - before) / len(times) * 1000
            p99 = times[int(len(times) * 0.99)]
            lines.append(f"| {title} | {statistics.median(times):.1f} | {p99:.1f} | {cost:.1f} |")
    return lines


def _times(client: FlaskClient, headers: dict[str, str], requests: list[Any]) -> list[float]:
    """Milliseconds of each request."""
    times = []
    for path, query in requests:
        started = time.perf_counter()
        answer = client.get(path, headers=headers, query_string=query)
        times.append((time.perf_counter() - started) * 1000)
        if answer.status_code != 200:
            raise SystemExit(f"{path} {query}: {answer.status} {answer.text}")
    return times


def _change(stage: Stage, client: FlaskClient, bases_cost: float) -> str:
    """What the order of the trail and the bases add to a PATCH and its place in the feed."""
    whole = positions.SEQUENCE
    sql = re.sub(r"recorded AS \(.*?\), published", "published", str(whole.clause), flags=re.S)
    without = Statement("events.sequence_only", sql)
    rounds: dict[str, list[float]] = {"with": [], "without": []}
    for number in range(ROUNDS):
        order: list[tuple[str, Any]] = [("with", whole), ("without", without)]
        for name, statement in order[:: 1 if number % 2 else -1]:
            positions.SEQUENCE = statement
            rounds[name].append(_round(stage, client))
    positions.SEQUENCE = whole
    more, less = sum(rounds["with"]) / ROUNDS + bases_cost, sum(rounds["without"]) / ROUNDS
    return (
        f"A PATCH and its place in the feed take {less * 1000:.2f} ms of processor time without the"
        f" past, {more * 1000:.2f} ms with it: {more / less - 1:+.1%}."
    )


def _round(stage: Stage, client: FlaskClient) -> float:
    """Seconds of processor time of a PATCH, with what gives its event a position."""
    _, subject, field, _ = calls.CASES[0]
    headers = calls.credential(stage, subject)
    before = events.spent(stage)
    for number in range(REQUESTS):
        calls.patch(client, headers, {field: f"City {time.monotonic_ns()}"})
        if number % 5 == 4:  # as many as there are at once with 50 changes a second
            with client.application.app_context():
                positions.sequence()
    return (events.spent(stage) - before) / REQUESTS


def _query(stage: Stage, sql: str, **values: object) -> list[tuple[Any, ...]]:
    with closing(stage.connect()) as session:
        session.autocommit = True
        with session.cursor() as database:
            database.execute(sql, values)
            return database.fetchall() if database.description else []

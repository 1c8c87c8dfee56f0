"""``python -m benchmarks tables``: the same requests on nearly empty and on large tables; retention.

Two installations with the same tenants and users run at once. One gets a year of audit rows, the
last 90 days of them also as events, and webhook events. Requests go to both in turn, by Flask's test
client. Then the oldest month is removed from each table, while a client reads and writes.
"""

from __future__ import annotations

import contextlib
import io
import json
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from flask.testing import FlaskClient

from app import create_app
from app.core.db import transactions
from app.events import positions
from app.events.jobs import remove_old_events
from app.inbox.jobs import remove_old_webhook_events
from app.inbox.signatures.sending import sign
from app.operations.jobs import keep_partitions
from benchmarks import tokens
from benchmarks.calls import PLATFORM_SUBJECT, add_platform_admin
from benchmarks.dataset import USER, org_id, row_id, subject
from benchmarks.events import spent
from benchmarks.stage import Stage

MONTHS = 12
ROUNDS, REQUESTS = 7, 30
PACE = 0.005  # seconds between two requests of the client beside the retention

PREPARE = """
CREATE TEMP TABLE people AS
SELECT row_number() OVER (ORDER BY id) - 1 AS number, tenant_id, id FROM users;
CREATE FUNCTION pg_temp.month(number integer) RETURNS timestamptz LANGUAGE sql STABLE AS
    $$SELECT date_trunc('month', now(), 'UTC') + number * interval '1 month'$$;
CREATE FUNCTION pg_temp.v7(moment timestamptz, number bigint) RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT (left(first_id_of(moment)::text, 14) || '7' || lpad(to_hex(number % 4096), 3, '0')
        || '-8' || lpad(to_hex(number), 15, '0'))::uuid
$$;
SET synchronous_commit = off;
SET maintenance_work_mem = '512MB';
DROP TABLE partitions.audit_events_first;
"""
# The indexes are made when the month is attached, which is quicker than with the rows.
ADD_MONTH = """
CREATE TABLE partitions.audit_events_{month} (LIKE audit_events);
INSERT INTO partitions.audit_events_{month} (tenant_id, id, created_at, actor, action, target_type,
    target_id, before, after, request_id)
SELECT p.tenant_id, pg_temp.v7(m.moment, n), m.moment, 'system:idp', 'user.updated', 'user',
    p.id::text, json_build_object('first_name', 'First' || n),
    json_build_object('first_name', 'First' || n + 1, 'updated_at', m.moment), 'request-' || n
FROM generate_series(0::bigint, {rows} - 1) n
CROSS JOIN LATERAL (SELECT pg_temp.month(-{month}) + n
    * ((least(now(), pg_temp.month(1 - {month})) - pg_temp.month(-{month})) / {rows}) AS moment) m
JOIN people p ON p.number = n * 7919 % (SELECT count(*) FROM people);
ALTER TABLE audit_events ATTACH PARTITION partitions.audit_events_{month}
    FOR VALUES FROM (first_id_of(pg_temp.month(-{month})))
    TO (first_id_of(pg_temp.month(1 - {month})));
"""
ADD_EVENTS = """
DELETE FROM events;
INSERT INTO events (position, tenant_id, id, created_at, type, actor, is_platform_actor, request_id,
    before, after, data)
SELECT (SELECT last_position FROM event_feed) + row_number() OVER (ORDER BY id), tenant_id, id,
    created_at, action, actor, false, request_id, before, after, after
FROM audit_events WHERE created_at > now() - interval '90 days' AND action = 'user.updated';
UPDATE event_feed SET last_position = (SELECT max(position) FROM events);
"""
ADD_WEBHOOK_EVENTS = """
INSERT INTO webhook_events (id, created_at, updated_at, version, source, external_id, event_type,
    status, detail, attempts, replays, headers, digest, request_id, processed_at, body)
SELECT pg_temp.v7(m.moment, n), m.moment, m.moment, 1, 'standard_webhooks', 'msg_loaded_' || n,
    'user.updated', 'succeeded', '', 1, 0, '{{}}', md5(n::text) || md5(n::text), '', m.moment,
    CASE WHEN m.moment > now() - interval '30 days' THEN convert_to(repeat('x', 400), 'UTF8') END
FROM generate_series(0, {rows} - 1) n
CROSS JOIN LATERAL (
    SELECT now() - interval '365 days' + n * (interval '365 days' / {rows}) AS moment) m;
"""
COUNTS = """
SELECT (SELECT count(*) FROM audit_events), (SELECT count(*) FROM events),
    (SELECT count(*) FROM webhook_events), pg_database_size(current_database())
"""


@dataclass
class Side:
    """One of the two installations, and the requests that are sent to it."""

    stage: Stage
    client: FlaskClient
    costs: dict[str, list[float]] = field(default_factory=dict)  # milliseconds of a request
    serial: int = 0

    def __post_init__(self) -> None:
        environment = self.stage.environment
        self.owner = tokens.bearer(environment, subject=subject(0), org_id=org_id(0))
        self.platform = tokens.bearer(environment, subject=PLATFORM_SUBJECT, org_id=org_id(0))

    def patch(self) -> Any:
        """A change, which adds an audit row and an event."""
        self.serial += 1
        path = f"/v1/users/{row_id(USER, self.serial % self.stage.users_per_tenant)}/meta_data"
        body = {"patches": {"seats": self.serial}}
        return self.client.patch(path, headers=self.owner, json=body)

    def post_webhook(self) -> Any:
        self.serial += 1
        preset, _, secret = self.stage.environment["IDP_WEBHOOK_SECRETS"].split()[0].partition(":")
        event = {"type": "invitation.created", "timestamp": "2026-06-01T12:00:00Z", "data": {}}
        message_id = f"msg_{time.time_ns()}"
        signed = sign(
            preset, secret, json.dumps(event).encode(), time.time(), message_id=message_id
        )
        return self.client.post("/webhooks/idp", data=signed.body, headers=signed.headers)

    def list_changes(self) -> Any:
        path = "/v1/audit-events?limit=50&order=-created_at"
        return self.client.get(path, headers=self.owner)

    def list_history(self) -> Any:
        """The changes of one row, of whatever month."""
        path = f"/v1/users/{row_id(USER, 1)}/history?limit=10"
        return self.client.get(path, headers=self.owner)

    def list_webhook_events(self) -> Any:
        path = "/v1/webhooks/events?limit=50&order=-created_at"
        return self.client.get(path, headers=self.platform)

    def read_feed(self) -> Any:
        """The last hundred events, as a program reads them that has nearly caught up."""
        self.sequence()
        return self.client.get(f"/v1/events?after={self.near_end}", headers=self.platform)

    def sequence(self) -> None:
        """Give a position to every event."""
        with self.client.application.app_context():
            while positions.sequence():
                pass

    def mark_end(self) -> None:
        """Let :meth:`read_feed` begin a hundred events before the end."""
        with closing(self.stage.connect()) as session, session.cursor() as database:
            database.execute("SELECT last_position - 100 FROM event_feed")
            ((self.near_end,),) = database.fetchall()


KINDS: dict[str, Callable[[Side], Any]] = {
    "PATCH meta_data: an audit row and an event": Side.patch,
    "POST /webhooks/idp": Side.post_webhook,
    "GET 50 audit rows of a tenant": Side.list_changes,
    "GET the history of a user": Side.list_history,
    "GET 50 webhook events": Side.list_webhook_events,
    "GET 100 events of the feed": Side.read_feed,
}


def report(empty: Stage, full: Stage, *, audit_rows: int, webhook_events: int) -> str:
    """Load the tables of ``full`` and compare the two; two tables."""
    with contextlib.redirect_stderr(io.StringIO()):  # the log
        sides = [
            Side(stage, create_app(stage.environment).test_client()) for stage in (empty, full)
        ]
        for side in sides:
            add_platform_admin(side.stage)
            _fill_pages(side)
        started = time.monotonic()
        rows = _load(full, audit_rows, webhook_events)
        loaded = time.monotonic() - started
        for _ in range(ROUNDS):
            for side in sides:
                _round(side)
            sides.reverse()
        costs = _costs(*sorted(sides, key=lambda side: side.stage is full))
        retention = _retention(next(side for side in sides if side.stage is full))
    return f"{rows} Loaded in {loaded:.0f} s.\n\n{costs}\n\n{retention}"


def _fill_pages(side: Side) -> None:
    """So many rows that each list has full pages on the nearly empty side too."""
    for _ in range(120):
        side.patch()
        side.post_webhook()
    for number in range(10):
        path = f"/v1/users/{row_id(USER, 1)}/meta_data"
        side.client.patch(path, headers=side.owner, json={"patches": {"seats": -number}})
    side.near_end = 0
    side.read_feed()


def _load(stage: Stage, audit_rows: int, webhook_events: int) -> str:
    with closing(stage.connect()) as session:
        session.autocommit = True
        with session.cursor() as database:
            database.execute(PREPARE)
            for month in range(MONTHS - 1, -1, -1):
                database.execute(ADD_MONTH.format(month=month, rows=audit_rows // MONTHS))
            database.execute(ADD_EVENTS)
            database.execute(ADD_WEBHOOK_EVENTS.format(rows=webhook_events))
            database.execute("VACUUM (ANALYZE)")
            database.execute("CHECKPOINT")
            database.execute(COUNTS)
            ((audit, events, received, size),) = database.fetchall()
    return (
        f"{audit:,} audit rows in {MONTHS} months, {events:,} events, {received:,} webhook events:"
        f" {size / 1e9:.1f} GB."
    )


def _round(side: Side) -> None:
    """The processor time of Python and PostgreSQL for each request; the first ones do not count."""
    side.sequence()
    side.mark_end()
    for name, send in KINDS.items():
        send(side)
        before = spent(side.stage)
        for _ in range(REQUESTS):
            answer = send(side)
            assert answer.status_code == 200, answer.text
        cost = (spent(side.stage) - before) / REQUESTS * 1000
        side.costs.setdefault(name, []).append(cost)


def _costs(empty: Side, full: Side) -> str:
    lines = [
        f"Processor time of a request in ms, medians of {ROUNDS} rounds of {REQUESTS} requests.\n",
        "| | nearly empty | full | ratio |",
        "|---|--:|--:|--:|",
    ]
    for name in KINDS:
        pairs = list(zip(empty.costs[name], full.costs[name], strict=True))
        first, second = (statistics.median(each) for each in zip(*pairs, strict=True))
        ratio = statistics.median(more / less for less, more in pairs)
        lines.append(f"| {name} | {first:.2f} | {second:.2f} | {ratio:.2f} |")
    return "\n".join(lines)


def _retention(side: Side) -> str:
    """Remove the oldest month of each table."""
    ages = {"AUDIT_DAYS": _days_since(side.stage, 2 - MONTHS)}
    ages |= {"WEBHOOK_EVENT_DAYS": 335, "EVENT_DAYS": 60}
    app = create_app({**side.stage.environment, **{name: str(days) for name, days in ages.items()}})
    calm: list[float] = []
    with _client(side, calm):
        time.sleep(10)
    lines = [
        f"A client beside it, with no retention: a request takes {max(calm):.0f} ms at most.\n",
        "| the oldest month of | rows | seconds | longest transaction, ms | longest request, ms |",
        "|---|--:|--:|--:|--:|",
    ]
    for name, job in (
        ("audit_events, a partition", keep_partitions),
        ("webhook_events, in batches", remove_old_webhook_events),
        ("events, in batches", remove_old_events),
    ):
        table = name.split(",")[0]
        before, seconds = _count(side.stage, table), 0.0
        longest: list[float] = []
        waited: list[float] = []
        with _client(side, waited), _transactions(longest), app.app_context():
            started = time.monotonic()
            job()
            seconds = time.monotonic() - started
        removed = before - _count(side.stage, table)
        lines.append(
            f"| {name} | {removed:,} | {seconds:.2f} | {max(longest):.0f} | {max(waited):.0f} |"
        )
    return "\n".join(lines)


@contextmanager
def _client(side: Side, times: list[float]) -> Iterator[None]:
    """A client that changes and lists while the block runs; the milliseconds of each request."""
    stop = threading.Event()

    def send() -> None:
        while not stop.is_set():
            for request in (side.patch, side.list_changes, side.list_webhook_events):
                started = time.monotonic()
                answer = request()
                times.append((time.monotonic() - started) * 1000)
                assert answer.status_code == 200, answer.text
                time.sleep(PACE)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def _transactions(times: list[float]) -> Iterator[None]:
    """The milliseconds of each transaction of this thread, from its first statement to its end."""
    own = threading.current_thread()
    began: list[float] = []

    @contextmanager
    def observe(name: str, _: str) -> Iterator[None]:
        is_own = threading.current_thread() is own
        if is_own and not began:
            began.append(time.monotonic())
        yield
        if is_own and name == "COMMIT":
            times.append((time.monotonic() - began.pop()) * 1000)

    transactions.observers.append(observe)
    try:
        yield
    finally:
        transactions.observers.remove(observe)


def _days_since(stage: Stage, month: int) -> int:
    """Whole days since the beginning of a month, which this one is 0."""
    return _value(
        stage,
        f"SELECT extract(day FROM now() - (date_trunc('month', now(), 'UTC')"
        f" + {month} * interval '1 month'))::int",
    )


def _count(stage: Stage, table: str) -> int:
    return _value(stage, f"SELECT count(*) FROM {table}")


def _value(stage: Stage, query: str) -> int:
    with closing(stage.connect()) as session, session.cursor() as database:
        database.execute(query)
        ((value,),) = database.fetchall()
    return int(value)

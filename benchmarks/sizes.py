"""``python -m benchmarks sizes``: how many bytes a tenant, a user, a change and the like take.

Tenants and users are those of the data set. The service makes the other rows. Indexes count.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from psycopg2.extensions import cursor

from app import create_app
from app.webhooks.deliveries import work
from benchmarks.stage import Stage
from benchmarks.tables import Side

REQUESTS = 3_000
TENANT = ("tenants", "subscriptions", "feature_overrides", "custom_fields", "custom_field_indexes")
USER = ("users", "memberships", "custom_field_index_rows")
GROWING = {
    "an audit row": "audit_events",
    "an event": "events",
    "a delivery of an event": "webhook_deliveries",
    "a received webhook, without its payload": "webhook_events",
}
ADD_ENDPOINT = """
INSERT INTO webhook_endpoints (tenant_id, id, created_at, updated_at, version, is_active, url, types,
    description, header_names, signing, created_by_user_id, updated_by_user_id)
SELECT id, id, now(), now(), 1, true, 'https://example.com/hook', '{*}', '', '{}', 'v1', 'x', 'x'
FROM tenants WHERE slug = 'company-0';
INSERT INTO webhook_endpoint_states (tenant_id, endpoint_id, secret, window_count)
SELECT tenant_id, id, '', 0 FROM webhook_endpoints;
"""
# What a delivery has when it was made. A payload goes after WEBHOOK_PAYLOAD_DAYS.
FINISH = """
UPDATE webhook_deliveries SET status = 'succeeded', attempts = 1, attempted_at = now(),
    next_attempt_at = NULL, response_code = 200, response_body = '{"ok": true}', duration_ms = 20;
UPDATE webhook_events SET body = NULL, headers = '{}', status = 'succeeded', processed_at = now(),
    next_attempt_at = NULL
"""
SIZE = """
SELECT pg_total_relation_size(%(table)s) + coalesce(
    (SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree(%(table)s) WHERE isleaf), 0)
"""


def report(stage: Stage) -> str:
    """A table of bytes."""
    users = stage.tenants * stage.users_per_tenant
    with _database(stage) as database:
        terms = _size(database, ["search_terms"]) / stage.tenants / (stage.users_per_tenant + 2)
        found = {
            "a tenant with a subscription, 5 overrides and 2 custom fields": (
                _size(database, TENANT) / stage.tenants + 2 * terms
            ),
            "a user with a membership, 10 keys of metadata and search terms": (
                _size(database, USER) / users + terms
            ),
        }
        empty = {table: _size(database, [table]) for table in GROWING.values()}
        _make_rows(stage, database)
        for name, table in GROWING.items():
            database.execute(f"SELECT count(*) FROM {table}")
            ((rows,),) = database.fetchall()
            found[name] = (_size(database, [table]) - empty[table]) / rows
    lines = ["| | bytes |", "|---|--:|"]
    return "\n".join([*lines, *(f"| {name} | {size:,.0f} |" for name, size in found.items())])


def _make_rows(stage: Stage, database: cursor) -> None:
    database.execute(ADD_ENDPOINT)
    with contextlib.redirect_stderr(io.StringIO()):  # the log
        side = Side(stage, create_app(stage.environment).test_client())
        for _ in range(REQUESTS):
            assert side.patch().status_code == 200
            assert side.post_webhook().status_code == 200
        side.sequence()
        with side.client.application.app_context():
            work.prepare()
            while work.add_deliveries():
                pass
    database.execute(FINISH)
    for table in GROWING.values():
        database.execute(f"VACUUM FULL {table}")


def _size(database: cursor, tables: Sequence[str]) -> int:
    total = 0
    for table in tables:
        database.execute(SIZE, {"table": table})
        ((size,),) = database.fetchall()
        total += size
    return total


@contextmanager
def _database(stage: Stage) -> Iterator[cursor]:
    with closing(stage.connect()) as session:
        session.autocommit = True
        with session.cursor() as opened:
            yield opened

"""What another tenant notices while a large tenant is deleted: times before and during it."""

from __future__ import annotations

import http.client
import itertools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from uuid import UUID, uuid4

from app import create_app
from benchmarks.dataset import USER, org_id, row_id, subject
from benchmarks.servers import serving
from benchmarks.stage import PROJECT, Stage
from benchmarks.tokens import bearer

CLIENTS = 4
PACE = 0.02  # seconds from one request of a client to the next
CALM = 10.0  # seconds of load before the deletion
LARGE = """
INSERT INTO tenants SELECT (jsonb_populate_record(t, jsonb_build_object('id', %(id)s::text,
    'idp_org_id', 'org_large', 'slug', 'large', 'is_active', false, 'deletes_at', now()))).*
FROM tenants t WHERE slug <> 'large' LIMIT 1;
INSERT INTO tenant_deletions (tenant_id, requested_at, requested_by, worked_at, stage, deleted_rows)
VALUES (%(id)s, now(), 'cli:benchmark', now() - interval '1 hour', 'waiting', '{}');
INSERT INTO users (id, created_at, updated_at, version, tenant_id, idp_org_id, created_by_user_id,
    updated_by_user_id, idp_user_id, email, email_key, first_name, last_name, is_active, meta_data)
SELECT gen_random_uuid(), now(), now(), 1, %(id)s, 'org_large', 'system:idp', 'system:idp',
    'large|' || n, n || '@large.example', n || '@large.example', 'First', 'Last', true, '{"note": "text"}'
FROM generate_series(1, %(users)s) n;
INSERT INTO memberships (id, created_at, updated_at, version, tenant_id, idp_org_id,
    created_by_user_id, updated_by_user_id, user_id, idp_membership_id, role, is_active)
SELECT gen_random_uuid(), now(), now(), 1, tenant_id, idp_org_id, 'system:idp', 'system:idp', id, '',
    'member', true FROM users WHERE tenant_id = %(id)s;
INSERT INTO custom_field_index_rows (tenant_id, field_id, entity_id, ordinal, text_key)
SELECT tenant_id, tenant_id, id, 0, 'text' FROM users WHERE tenant_id = %(id)s;
INSERT INTO audit_events (tenant_id, id, created_at, actor, action, target_type, target_id, before,
    after, request_id)
SELECT tenant_id, gen_random_uuid(), now(), 'system:idp', action, 'user', id::text, '{}', '{}', ''
FROM users, unnest(ARRAY['user.created', 'user.updated']) action WHERE tenant_id = %(id)s;
INSERT INTO identity_objects (source, kind, object_id, organization_id, user_id, is_deleted,
    is_waiting, state, created_at, updated_at)
SELECT 'generic', 'membership', id::text, 'org_large', idp_user_id, false, false, '{}', now(), now()
FROM users WHERE tenant_id = %(id)s;
"""


def report(stage: Stage, users: int) -> str:
    """Delete a tenant of so many users under load; a table of the times."""
    tenant_id = _create_large_tenant(stage, users)
    with serving(stage, "service") as server:
        with _load(stage, server.port) as before:
            time.sleep(CALM)
        with _load(stage, server.port) as during:
            started = time.monotonic()
            _delete(stage, tenant_id)
            seconds = time.monotonic() - started
    rows = _deleted_rows(stage)
    lines = ["| | requests | p50 ms | p99 ms | longest ms |", "|---|--:|--:|--:|--:|"]
    lines += [_line("before", before), _line("during", during)]
    return "\n".join([*lines, "", f"{rows:,} rows of {users:,} users in {seconds:.0f} s."])


def _create_large_tenant(stage: Stage, users: int) -> UUID:
    tenant_id = uuid4()
    with closing(stage.connect()) as session:
        with session, session.cursor() as database:
            database.execute(LARGE, {"id": str(tenant_id), "users": users})
        session.autocommit = True
        with session.cursor() as database:
            database.execute("ANALYZE")
    return tenant_id


@contextmanager
def _load(stage: Stage, port: int) -> Iterator[list[float]]:
    """Clients of one other tenant for as long as the block lasts; the seconds of each request."""
    headers = bearer(stage.environment, subject=subject(0), org_id=org_id(0))
    headers["Content-Type"] = "application/json"
    stop, times = threading.Event(), []

    def send() -> None:
        with closing(http.client.HTTPConnection("127.0.0.1", port)) as client:
            for number in itertools.count():
                if stop.is_set():
                    return
                path = f"/v1/users/{row_id(USER, number % stage.users_per_tenant)}"
                started = time.monotonic()
                if number % 2:
                    client.request("GET", path, headers=headers)
                else:
                    body = json.dumps({"patches": {"note": f"n{number}"}})
                    client.request("PATCH", f"{path}/meta_data", body, headers)
                answer = client.getresponse()
                answer.read()
                times.append(time.monotonic() - started)
                assert answer.status == 200, answer.status
                time.sleep(max(0.0, started + PACE - time.monotonic()))

    threads = [threading.Thread(target=send) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield times
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _delete(stage: Stage, tenant_id: UUID) -> None:
    """Let a worker of its own delete the tenant, until nothing is queued."""
    from app.privacy.jobs import delete_tenant

    with create_app(stage.environment).app_context():
        delete_tenant.push(str(tenant_id))
    worker = [sys.executable, "-m", "flask", "--app", "wsgi", "jobs", "worker", "--burst"]
    subprocess.run(
        [*worker, "--queue", "maintenance"],
        cwd=PROJECT,
        env=stage.environment,
        check=True,
        capture_output=True,
    )


def _deleted_rows(stage: Stage) -> int:
    with closing(stage.connect()) as session, session.cursor() as database:
        database.execute("SELECT after -> 'rows' FROM audit_events WHERE action = 'tenant.deleted'")
        ((rows,),) = database.fetchall()
    return sum(rows.values())


def _line(name: str, times: list[float]) -> str:
    ordered = sorted(1000 * each for each in times)
    p50, p99 = (ordered[int(len(ordered) * share)] for share in (0.5, 0.99))
    return f"| {name} | {len(ordered):,} | {p50:.1f} | {p99:.1f} | {ordered[-1]:.1f} |"

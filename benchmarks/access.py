"""``python -m benchmarks access``: decisions, searches and the snapshot of one large tenant.

Requests go to a running service over one connection, and take turns. Round trips to PostgreSQL are
counted in this process.
"""

from __future__ import annotations

import contextlib
import io
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from app import create_app
from benchmarks.calls import WARM_UP, credential
from benchmarks.dataset import TENANT, USER, row_id, subject
from benchmarks.servers import serving
from benchmarks.stage import Stage
from tests.clients.assembled import assemble
from tests.messages import sent_messages

USERS = RESOURCES = 10_000
FOLDERS = 100
TURNS, SEARCHES = 400, 60
CHECKS = 20_000
ALLOWED = (  # how many times as long as the other request
    ("one decision", "GET of a user", 1.3),
    ("100 decisions about a person", "one decision", 3.0),
    ("100 decisions, all different", "one decision", 3.0),
)
SEARCH_MILLISECONDS = 50
WRITTEN = "now(), now(), 1, '', ''"
COLUMNS = "created_at, updated_at, version, created_by_user_id, updated_by_user_id"
DATA = (
    f"""
    INSERT INTO product_permissions (id, {COLUMNS}, key, description, group_name, requires_flag)
    SELECT gen_random_uuid(), {WRITTEN}, 'doc:' || name, '', '', flag
    FROM (VALUES ('read', NULL), ('write', NULL), ('share', 'flag-0')) v (name, flag)
    """,
    f"""
    INSERT INTO roles (id, {COLUMNS}, tenant_id, key, name, permissions, inherits, assignable_by)
    SELECT gen_random_uuid(), {WRITTEN}, %(tenant)s, 'role-' || n, 'Role', CASE n WHEN 1
        THEN '{{doc:read}}'::text[] WHEN 2 THEN '{{doc:write,doc:share}}' ELSE '{{}}' END,
        CASE WHEN n BETWEEN 2 AND 5 THEN 'role-' || n - 1 END, 'admin'
    FROM generate_series(1, 50) n
    """,
    f"""
    INSERT INTO access_resources ({COLUMNS}, tenant_id, type, id, parent_type, parent_id, attributes)
    SELECT {WRITTEN}, %(tenant)s, CASE WHEN n < %(folders)s THEN 'folder' ELSE 'doc' END, n,
        CASE WHEN n >= %(folders)s THEN 'folder' END,
        CASE WHEN n >= %(folders)s THEN n %% %(folders)s END, '{{"status": "open"}}'
    FROM generate_series(0, %(resources)s - 1) n ORDER BY n
    """,
    f"""
    INSERT INTO role_assignments (id, {COLUMNS}, tenant_id, membership_id, role_id, resource_type,
        resource_id, source)
    SELECT gen_random_uuid(), {WRITTEN}, %(tenant)s, m.id, r.id, 'folder',
        (m.number * 7 + n) %% %(folders)s, 'api'
    FROM (SELECT id, row_number() OVER (ORDER BY id) AS number FROM memberships) m
    CROSS JOIN generate_series(1, 2) n
    JOIN roles r ON r.key = 'role-' || n + 1 AND r.tenant_id = %(tenant)s
    """,
    "ANALYZE",
)
Send = Callable[[], Any]


def report(stage: Stage) -> str:
    """A table, and whether each figure is allowed."""
    headers = credential(stage, subject(0)) | {"Content-Type": "application/json"}
    with closing(stage.connect()) as session, session.cursor() as database:
        session.autocommit = True
        database.execute("SELECT count(*) FROM role_assignments")
        values = {"tenant": str(row_id(TENANT, 0)), "folders": FOLDERS, "resources": RESOURCES}
        for statement in DATA if database.fetchone() == (0,) else ():
            database.execute(statement, values)
    requests = _requests()
    with serving(stage, "service") as server:
        connection = HTTPConnection("127.0.0.1", server.port)
        times = _times(connection, headers, requests)
        checks = _checks(f"http://127.0.0.1:{server.port}", headers["Authorization"][7:])
    trips = _round_trips(stage, headers, requests)
    lines = ["| request | p50 ms | p99 ms | round trips |", "|---|--:|--:|--:|"]
    for name in requests:
        cuts = statistics.quantiles(times[name], n=100)
        lines.append(f"| {name} | {cuts[49]:.2f} | {cuts[98]:.2f} | {trips[name]} |")
    return "\n".join([*lines, "", *_verdicts(times), checks])


def _verdicts(times: dict[str, list[float]]) -> list[str]:
    middle = {name: statistics.median(each) for name, each in times.items()}
    found = [
        f"{name}: {middle[name] / middle[other]:.2f} times as long as {other}, {most} are allowed"
        for name, other, most in ALLOWED
    ]
    slowest = max(middle[name] for name in middle if name.startswith("search"))
    return [*found, f"slowest search: {slowest:.1f} ms, {SEARCH_MILLISECONDS} are allowed"]


def _requests() -> dict[str, tuple[str, str, Callable[[int], Any]]]:
    """Method, path and body of the n-th request, by name."""

    def question(number: int, action: str = "doc:read") -> dict[str, Any]:
        return {
            "subject": {"type": "identity", "id": subject(1 + number % (USERS - 1))},
            "action": {"name": action},
            "resource": _resource(number),
        }

    def without(part: str, number: int, action: str, **more: Any) -> dict[str, Any]:
        return {**question(number, action), part: more, "page": {"limit": 50}}

    return {
        "GET of a user": ("GET", f"/v1/users/{row_id(USER, 1)}", lambda _: None),
        "one decision": ("POST", "/access/v1/evaluation", question),
        "one with a flag": ("POST", "/access/v1/evaluation", lambda n: question(n, "doc:share")),
        "100 decisions about a person": (
            "POST",
            "/access/v1/evaluations",
            lambda n: {
                **question(n),
                "evaluations": [{"resource": _resource(n * 100 + each)} for each in range(100)],
            },
        ),
        "100 decisions, all different": (
            "POST",
            "/access/v1/evaluations",
            lambda n: {"evaluations": [question(n * 100 + each) for each in range(100)]},
        ),
        "search of subjects": (
            "POST",
            "/access/v1/search/subject",
            lambda n: without("subject", n, "doc:read", type="user"),
        ),
        "search of resources": (
            "POST",
            "/access/v1/search/resource",
            lambda n: without("resource", n, "doc:read", type="doc"),
        ),
        "search of resources, by a flag": (
            "POST",
            "/access/v1/search/resource",
            lambda n: without("resource", n, "doc:share", type="doc"),
        ),
        "search of subjects, none": (
            "POST",
            "/access/v1/search/subject",
            lambda n: without("subject", n, "doc:unknown", type="user"),
        ),
        "search of actions": (
            "POST",
            "/access/v1/search/action",
            lambda n: {name: one for name, one in question(n).items() if name != "action"},
        ),
    }


def _resource(number: int) -> dict[str, str]:
    kind = "folder" if number % RESOURCES < FOLDERS else "doc"
    return {"type": kind, "id": str(number % RESOURCES)}


def _times(
    connection: HTTPConnection, headers: dict[str, str], requests: dict[str, Any]
) -> dict[str, list[float]]:
    """Milliseconds of each request; they take turns."""
    times: dict[str, list[float]] = {name: [] for name in requests}
    for turn in range(-WARM_UP, TURNS):
        for name, (method, path, body) in requests.items():
            if name.startswith("search") and turn >= SEARCHES:
                continue
            text = json.dumps(body(turn * 31 % 9973)) if method == "POST" else None
            started = time.perf_counter()
            connection.request(method, path, text, headers)
            answer = connection.getresponse()
            found = answer.read()
            if turn >= 0:
                times[name].append((time.perf_counter() - started) * 1000)
            if answer.status != 200:
                raise SystemExit(f"{name}: {answer.status} {found.decode()}")
    return times


def _round_trips(stage: Stage, headers: dict[str, str], requests: dict[str, Any]) -> dict[str, int]:
    """The round trips of one request of each kind that is warm."""
    trips = {}
    with contextlib.redirect_stderr(io.StringIO()):  # the log
        client = create_app(stage.environment).test_client()
        for name, (method, path, body) in requests.items():
            for number in range(8):
                with sent_messages() as sent:
                    client.open(path, method=method, json=body(number), headers=headers)
            trips[name] = len(sent)
    return trips


def _checks(url: str, token: str) -> str:
    """How long the snapshot takes, and decisions in memory."""
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, str(assemble(Path(folder))))
        from controlplane.access import Access

        started = time.perf_counter()
        access = Access(url, token)
        loaded = time.perf_counter() - started
    yes, started = 0, time.perf_counter()
    for number in range(CHECKS):
        who = {"type": "identity", "id": subject(1 + number % (USERS - 1))}
        yes += access.check(who, "doc:read", _resource(number))
    took = time.perf_counter() - started
    access.close()
    return (
        f"snapshot: loaded in {loaded:.2f} s; {CHECKS / took:.0f} calls of check() a second,"
        f" {yes / CHECKS:.1%} of them yes"
    )

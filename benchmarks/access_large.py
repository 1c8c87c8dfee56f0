"""``python -m benchmarks access --large``: a tenant with a million resources and ten million assignments.

Every user has a role for the whole tenant, one for the folder 0 (the shared one), and a hundred for
documents. User 1 has one for each of 100,000 documents, and the group for each of 10,000.
"""

from __future__ import annotations

import json
import statistics
import time
from contextlib import closing
from http.client import HTTPConnection
from typing import Any

from psycopg2.extensions import connection

from benchmarks.access import COLUMNS, DATA, WRITTEN
from benchmarks.calls import credential
from benchmarks.dataset import MEMBERSHIP, TENANT, USER, row_id, subject
from benchmarks.servers import serving
from benchmarks.stage import Stage

USERS = 100_000
RESOURCES, FOLDERS, SHARED = 1_000_000, 1_000, 100_000
ASSIGNMENTS = 10_000_000
TURNS, WARM_UP = 40, 10
GROUP = row_id(99, 0)
SPREAD = -(-(ASSIGNMENTS - 2 * USERS - SHARED - SHARED // 10) // USERS)  # of each user
MEMBERS = """
    CREATE TEMP TABLE members AS
    SELECT id, user_id, row_number() OVER (ORDER BY id) - 1 AS number FROM memberships;
    CREATE TEMP TABLE known AS SELECT key, id FROM roles WHERE tenant_id = %(tenant)s
"""
# The loading checks no foreign keys, so the group needs no directory.
ADD_GROUP = """
    INSERT INTO scim_groups (tenant_id, id, created_at, updated_at, version, connection_id,
        display_name, display_name_key, external_id)
    VALUES (%(tenant)s, %(group)s, now(), now(), 1, %(group)s, 'group', 'group', '');
    INSERT INTO scim_members (tenant_id, group_id, member_id, user_id, display)
    SELECT %(tenant)s, %(group)s, user_id, user_id, '' FROM members WHERE number %% 10 = 3
"""
ASSIGN = f"""
    INSERT INTO role_assignments (id, {COLUMNS}, tenant_id, source, {{target}}, role_id,
        resource_type, resource_id)
    SELECT gen_random_uuid(), {WRITTEN}, %(tenant)s, 'api', {{chosen}}, k.id, {{place}}
    FROM {{rows}} JOIN known k ON k.key = {{role}}
"""
MANY = "generate_series(%(folders)s, %(folders)s + {0} - 1) n"
ASSIGNED = (  # target, its value, place, rows, role
    (
        *("membership_id", "m.id", "'doc', 1000 + (number * 9973 + n * 10007) %% 999000"),
        *("members m CROSS JOIN generate_series(1, %(spread)s) n", "'role-' || 2 + n %% 2"),
    ),
    ("membership_id", "m.id", "NULL, NULL", "members m", "'role-7'"),
    ("membership_id", "m.id", "'folder', 0", "members m", "'role-1'"),
    (
        *("membership_id", "m.id", "'doc', n"),
        *(f"members m CROSS JOIN {MANY.format(SHARED)}", "'role-4' AND number = 1"),
    ),
    ("group_id", "%(group)s", "'doc', n", MANY.format(SHARED // 10), "'role-5'"),
)


def report(stage: Stage) -> str:
    """A table of requests with the times of each."""
    with closing(stage.connect()) as session:
        lines = [_fill(session)]
    headers = credential(stage, subject(0)) | {"Content-Type": "application/json"}
    lines += ["", "| request | p50 ms | slowest ms |", "|---|--:|--:|"]
    with serving(stage, "service") as server:
        http = HTTPConnection("127.0.0.1", server.port)
        for name, (method, path, body) in _requests().items():
            times = [_send(http, headers, method, path, body, turn) for turn in range(TURNS)]
            measured = times[WARM_UP:]
            lines.append(f"| {name} | {statistics.median(measured):.1f} | {max(measured):.1f} |")
        lines += [_changes(http, headers), _pages(http, headers)]
    return "\n".join(lines)


def _fill(session: connection) -> str:
    """Load the data unless they are there; how many rows the tables have, and their size."""
    session.autocommit = True
    with session.cursor() as database:
        database.execute("SELECT count(*) FROM access_resources")
        if database.fetchone() != (RESOURCES,):
            _load(database)
        database.execute(
            "SELECT (SELECT count(*) FROM access_resources), (SELECT count(*) FROM role_assignments),"
            " pg_size_pretty(pg_total_relation_size('role_assignments')),"
            " pg_size_pretty(pg_indexes_size('role_assignments'))"
        )
        (found,) = database.fetchall()
    return "{:,} resources, {:,} assignments ({}, of which {} of indexes)".format(*found)


def _load(database: Any) -> None:
    """Fill the tables without checks of foreign keys, then create their indexes again."""
    names = {"tenant": row_id(TENANT, 0), "group": GROUP, "spread": SPREAD}
    values = {**names, "folders": FOLDERS, "resources": RESOURCES}
    values = {name: one if isinstance(one, int) else str(one) for name, one in values.items()}
    database.execute("SET session_replication_role = replica; SET synchronous_commit = off")
    database.execute("SET maintenance_work_mem = '1GB'")
    for statement in (*DATA[:3], *MEMBERS.split(";"), *ADD_GROUP.split(";")):
        database.execute(statement, values)
    database.execute(
        "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'role_assignments'"
        " AND indexname <> 'pk_role_assignments'"
    )
    indexes = database.fetchall()
    for name, _ in indexes:
        database.execute(f"DROP INDEX {name}")
    for target, chosen, place, rows, role in ASSIGNED:
        parts = {"target": target, "chosen": chosen, "place": place, "rows": rows, "role": role}
        database.execute(ASSIGN.format(**parts), values)
    for _, definition in indexes:
        database.execute(definition)
    database.execute("VACUUM ANALYZE")
    database.execute("CHECKPOINT")


def _requests() -> dict[str, tuple[str, str, Any]]:
    """Method, path and body of the n-th request, by name."""

    def question(who: int, what: int, action: str = "doc:read") -> dict[str, Any]:
        return {
            "subject": {"type": "identity", "id": subject(who % USERS)},
            "action": {"name": action},
            "resource": {"type": "folder" if what < FOLDERS else "doc", "id": str(what)},
        }

    def search(part: str, type_: str, *asked: Any) -> dict[str, Any]:
        return {**question(*asked), part: {"type": type_}, "page": {"limit": 50}}

    evaluation, path = "/access/v1/evaluation", "/access/v1/search/"
    member = row_id(MEMBERSHIP, 1)
    decisions = {
        "one decision": lambda n: question(n * 7919, 1000 + n * 997),
        "one decision about who has 100,000 assignments": lambda n: question(1, 1000 + n * 997),
        "one decision about the shared folder": lambda n: question(n * 7919, 0),
        "one decision about who is in a group": lambda n: question(n * 10 + 3, 1000 + n),
    }
    subjects = {
        "search of subjects": (3_000, "doc:read"),
        "search of subjects of the shared folder": (0, "doc:read"),
        "search of subjects of the shared folder, none": (0, "doc:write"),
        "search of subjects, some of a group": (1_500, "doc:share"),
    }
    resources = {"": 5, ", of who has 100,000": 1, ", of a member of the group": 13}
    found = {name: ("POST", evaluation, body) for name, body in decisions.items()}
    found |= {
        name: ("POST", path + "subject", lambda n, of=of: search("subject", "user", n, *of))
        for name, of in subjects.items()
    }
    for action in ("doc:read", "doc:unknown"):
        found |= {
            f"search of resources ({action}){name}": (
                *("POST", path + "resource"),
                lambda n, who=who, action=action: search("resource", "doc", who, 0, action),
            )
            for name, who in resources.items()
        }
    found |= {
        f"search of actions{name}": (
            *("POST", path + "action"),
            lambda n, who=who: {**question(who, 1000 + n * 997), "action": {"name": ""}},
        )
        for name, who in resources.items()
    }
    lists = {
        "assignments": "role-assignments",
        "assignments of a membership": f"role-assignments?membership_id={row_id(MEMBERSHIP, 7)}",
        "assignments of a membership with 100,000": f"role-assignments?membership_id={member}",
        "assignments of a group": f"role-assignments?group_id={GROUP}",
        "assignments of a role": "role-assignments?role=role-4",
        "assignments for a resource": "role-assignments?resource_type=doc&resource_id=1234",
        "assignments for the shared folder": (
            "role-assignments?resource_type=folder&resource_id=0"
        ),
        "assignments of a membership for a resource": (
            f"role-assignments?membership_id={member}&resource_type=folder&resource_id=0"
        ),
        "resources": "resources",
        "resources of a type": "resources?type=doc",
    }
    found |= {f"list of {name}": ("GET", f"/v1/{tail}", None) for name, tail in lists.items()}
    found["GET of a user"] = ("GET", f"/v1/users/{row_id(USER, 1)}", None)
    return found


def _send(
    http: HTTPConnection, headers: dict[str, str], method: str, path: str, body: Any, turn: int
) -> float:
    """The milliseconds of a request."""
    text = body and json.dumps(body(turn))
    return _timed(http, headers, method, path, text)[0]


def _timed(
    http: HTTPConnection, headers: dict[str, str], method: str, path: str, text: str | None
) -> tuple[float, Any]:
    started = time.perf_counter()
    http.request(method, path, text, headers)
    answer = http.getresponse()
    found = answer.read()
    took = (time.perf_counter() - started) * 1000
    if answer.status >= 300:
        raise SystemExit(f"{method} {path}: {answer.status} {found.decode()}")
    return took, json.loads(found) if found else None


def _changes(http: HTTPConnection, headers: dict[str, str]) -> str:
    """Assignments are made, and removed."""
    made, removed = [], []
    for number in range(TURNS):
        body = {
            "membership_id": str(row_id(MEMBERSHIP, 10 + number)),
            "role": "role-5",
            "resource": {"type": "doc", "id": str(2_000 + number)},
        }
        took, found = _timed(http, headers, "POST", "/v1/role-assignments", json.dumps(body))
        made.append(took)
        path = f"/v1/role-assignments/{found['data']['id']}"
        removed.append(_timed(http, headers, "DELETE", path, None)[0])
    return "\n".join(
        f"| {name} | {statistics.median(times):.1f} | {max(times):.1f} |"
        for name, times in (("assign", made), ("remove an assignment", removed))
    )


def _pages(http: HTTPConnection, headers: dict[str, str]) -> str:
    """All pages of a search that finds every user."""
    body = {
        "subject": {"type": "user"},
        "action": {"name": "doc:read"},
        "resource": {"type": "folder", "id": "0"},
    }
    token, found, times = "", 0, []
    while token or not times:
        page = {"limit": 1_000, "token": token}
        text = json.dumps({**body, "page": page})
        took, answer = _timed(http, headers, "POST", "/access/v1/search/subject", text)
        times.append(took)
        token, found = answer["page"]["next_token"], found + answer["page"]["count"]
    return (
        f"| page of 1,000 of a search that finds {found:,} |"
        f" {statistics.median(times):.1f} | {max(times):.1f} |"
    )

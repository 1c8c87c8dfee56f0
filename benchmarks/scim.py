"""``python -m benchmarks scim``: a directory's requests in a tenant of 100,000 users.

The queries are timed one after another, the look-ups and changes of a sync over four connections.
The first sync creates users and groups; the second sends the same again and must change nothing.
"""

from __future__ import annotations

import http.client
import json
import statistics
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from threading import local
from typing import Any
from urllib.parse import quote

from app.auth.keys import digest_of
from benchmarks.dataset import TENANT, USER, row_id
from benchmarks.servers import Server, serving
from benchmarks.stage import Stage

TOKEN = "scim_benchmark"
CORE = "urn:ietf:params:scim:schemas:core:2.0:"
PATCH_OP = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/scim+json"}
CONNECTIONS = 4
REPEATS = 11
MEMBERS = 50  # of a group

CONNECT = """
INSERT INTO scim_connections
    (tenant_id, id, created_at, updated_at, version, created_by_user_id, updated_by_user_id, name,
        provider, status, default_role, group_roles, deactivate, acts_as, digest, prefix,
        request_count, error_count, last_error)
    VALUES (%(tenant)s, %(tenant)s, now(), now(), 1, 'cli', 'cli', 'Directory', 'generic', 'active',
        'member', '{"Group 1": "admin"}', 'membership', 'owner', %(digest)s, 'scim_', 0, 0, '')
    ON CONFLICT DO NOTHING;
INSERT INTO scim_users
    (tenant_id, id, created_at, updated_at, version, connection_id, user_name, user_name_key,
        external_id, attributes, has_mapped_role)
    SELECT tenant_id, id, created_at, updated_at, 1, tenant_id, email, email_key, idp_user_id,
        json_build_object('active', true, 'emails', json_build_array(
            json_build_object('value', email, 'type', 'work', 'primary', true))), false
    FROM users WHERE tenant_id = %(tenant)s
    ON CONFLICT DO NOTHING;
INSERT INTO scim_emails (tenant_id, user_id, position, value, type, display, is_primary)
    SELECT tenant_id, id, 0, lower(email), 'work', '', true
    FROM users WHERE tenant_id = %(tenant)s
    ON CONFLICT DO NOTHING;
"""


class Directory:
    """A directory's client; each of its threads has a connection."""

    def __init__(self, server: Server) -> None:
        self._port = server.port
        self._local = local()

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        """The answer's body."""
        if not hasattr(self._local, "connection"):
            self._local.connection = http.client.HTTPConnection("127.0.0.1", self._port)
        data = None if body is None else json.dumps(body)
        self._local.connection.request(method, f"/scim/v2{path}", data, HEADERS)
        answer = self._local.connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status} {content[:500]!r}")
        return json.loads(content)

    def find(self, scim_filter: str, at: str = "/Users") -> Any:
        """The first resource that satisfies the filter, or None."""
        found = self("GET", f"{at}?filter={quote(scim_filter)}&startIndex=1&count=100")
        return next(iter(found.get("Resources") or ()), None)


def report(stage: Stage, *, seconds: int, users: int) -> str:
    """The figures, as text; a sync has ``users`` users."""
    stage.environment["RATELIMIT_SCIM"] = stage.environment["RATELIMIT_DEFAULT"]
    with closing(stage.connect()) as session, session.cursor() as database:
        tenant = str(row_id(TENANT, 0))
        database.execute(CONNECT, {"tenant": tenant, "digest": digest_of(TOKEN)})
        session.commit()
        session.autocommit = True
        database.execute("VACUUM (ANALYZE)")
        with serving(stage, "service") as server:
            directory = Directory(server)
            lines = [f"{stage.users_per_tenant:,} users of one tenant"]
            lines += _queries(directory, stage)
            lines += _throughput(directory, stage, seconds)
            lines.append(_sync("first sync", directory, users))
            before = _changes(database)
            lines.append(_sync("again", directory, users))
            if _changes(database) != before:
                raise SystemExit("The second sync has changed something.")
    return "\n".join(lines)


def _queries(directory: Directory, stage: Stage) -> list[str]:
    middle = stage.users_per_tenant // 2
    user = directory("GET", f"/Users/{row_id(USER, middle)}")
    name, external = user["userName"], user["externalId"]
    filters = {
        "userName eq": f'userName eq "{name}"',
        "externalId eq": f'externalId eq "{external}"',
        "emails.value eq": f'emails.value eq "{name}"',
        "emails[type eq].value eq": f'emails[type eq "work"].value eq "{name}"',
        "id eq": f'id eq "{user["id"]}"',
        "active eq false": "active eq false",
        "userName sw": f'userName sw "{name[:12]}"',
    }
    queries = {title: f"/Users?filter={quote(one)}" for title, one in filters.items()}
    queries |= {
        "first page": "/Users?startIndex=1&count=100",
        "middle page": f"/Users?startIndex={middle}&count=100",
        "one by id": f"/Users/{user['id']}",
    }
    return [
        f"{title:26} {_milliseconds(lambda path=path: directory('GET', path)):7.1f} ms (p50)"
        for title, path in queries.items()
    ]


def _milliseconds(ask: Callable[[], Any]) -> float:
    ask()
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        ask()
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000


def _throughput(directory: Directory, stage: Stage, seconds: int) -> list[str]:
    def look_up(number: int) -> None:
        directory("GET", f"/Users/{row_id(USER, number % stage.users_per_tenant)}")

    def find(number: int) -> None:
        scim_filter = f'userName eq "{names[number % len(names)]}"'
        if directory.find(scim_filter) is None:
            raise SystemExit(f"{scim_filter} finds nobody")

    def patch(number: int) -> None:
        operation = {"op": "replace", "path": "title", "value": f"Title {number} {started}"}
        body = {"schemas": [PATCH_OP], "Operations": [operation]}
        directory("PATCH", f"/Users/{row_id(USER, number % stage.users_per_tenant)}", body)

    started = time.monotonic()
    page = directory("GET", "/Users?count=200&attributes=userName")
    names = [user["userName"] for user in page["Resources"]]
    named = {"userName eq": find, "GET of a user": look_up, "PATCH": patch}
    return [
        f"{title:26} {_per_second(work, seconds):7.0f} requests/s over {CONNECTIONS} connections"
        for title, work in named.items()
    ]


def _per_second(work: Callable[[int], None], seconds: int) -> float:
    numbers, end = count(), time.monotonic() + seconds

    def until_the_end(_: int) -> int:
        done = 0
        while time.monotonic() < end:
            work(next(numbers))
            done += 1
        return done

    with ThreadPoolExecutor(CONNECTIONS) as threads:
        return sum(threads.map(until_the_end, range(CONNECTIONS))) / seconds


def _sync(title: str, directory: Directory, users: int) -> str:
    """What a directory does: look each one up, then create or replace it."""
    started = time.monotonic()
    ids = _in_parallel(lambda number: _put(directory, "/Users", "userName", _user(number)), users)
    groups = max(1, users // MEMBERS)
    members = [ids[number * MEMBERS : (number + 1) * MEMBERS] for number in range(groups)]
    _in_parallel(
        lambda number: _put(directory, "/Groups", "displayName", _group(number, members[number])),
        groups,
    )
    return f"{title}: {users:,} users and {groups:,} groups in {time.monotonic() - started:.1f} s"


def _put(directory: Directory, at: str, key: str, resource: dict[str, Any]) -> str:
    found = directory.find(f'{key} eq "{resource[key]}"', at)
    if found is None:
        made: str = directory("POST", at, resource)["id"]
        return made
    directory("PUT", f"{at}/{found['id']}", resource)
    return str(found["id"])


def _user(number: int) -> dict[str, Any]:
    address = f"person{number}@directory.example"
    return {
        "schemas": [f"{CORE}User"],
        "userName": address,
        "externalId": f"directory-{number}",
        "name": {"givenName": f"First{number}", "familyName": f"Last{number}"},
        "emails": [{"value": address, "type": "work", "primary": True}],
        "active": True,
    }


def _group(number: int, members: Iterable[str]) -> dict[str, Any]:
    return {
        "schemas": [f"{CORE}Group"],
        "displayName": f"Group {number}",
        "members": [{"value": member} for member in members],
    }


def _in_parallel(work: Callable[[int], Any], times: int) -> list[Any]:
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        return list(threads.map(work, range(times)))


def _changes(database: Any) -> Any:
    database.execute(
        "SELECT (SELECT count(*) FROM audit_events), (SELECT sum(version) FROM scim_users),"
        " (SELECT sum(version) FROM scim_groups), (SELECT sum(version) FROM memberships)"
    )
    return database.fetchone()

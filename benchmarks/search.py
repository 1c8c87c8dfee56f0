"""``python -m benchmarks search``: how long searches take, and what the search costs writers.

Searches are requests to a running service over one connection, one after the other. Writers are
requests through Flask's test client, in rounds with and without the upkeep of the search terms.
"""

from __future__ import annotations

import contextlib
import io
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from unittest.mock import patch
from urllib.parse import urlencode

import psutil
from flask.testing import FlaskClient

from app import create_app
from app.search import writer
from benchmarks import tokens
from benchmarks.calls import PLATFORM_SUBJECT, add_platform_admin, credential
from benchmarks.dataset import USER, row_id, subject
from benchmarks.servers import serving, tree_cpu_seconds
from benchmarks.stage import Stage

SEARCHES = 300  # of each row of the table
WARM_UP = 30
ROUNDS, WRITES = 15, 40  # each round has so many writes with and without upkeep
QUERIES = (
    ("two letters of every user", "fi"),
    ("two letters of every tenant and user", "te"),
    ("a word of every user", "tenant"),
    ("two words of every user, apart", "tenant first"),
    ("a rare word", "last{number}"),
    ("a name", "first{number} last{number}"),
    ("a name, the other way round", "last{number} first{number}"),
    ("an address", "user{number}@tenant-{tenant}.example"),
    ("the beginning of an address", "user{number}@t"),
    ("an id of the identity provider", "idp|{number}"),
    ("nothing", "zzzz"),
)


def report(stage: Stage) -> str:
    """Two tables."""
    add_platform_admin(stage)
    return "\n\n".join([_searches(stage), _writes(stage)])


def _searches(stage: Stage) -> str:
    callers = {
        "tenant": credential(stage, subject(0)),
        "platform": tokens.bearer(stage.environment, subject=PLATFORM_SUBJECT, org_id="none"),
    }
    users = stage.tenants * stage.users_per_tenant
    lines = [
        f"Milliseconds of one search among {users:,} users, p50 / p99, and results",
        "",
        "| search | " + " | ".join(callers) + " |",
        "|---|" + "--:|" * len(callers),
    ]
    with serving(stage, "service") as server:
        connection = HTTPConnection("127.0.0.1", server.port)
        for title, query in QUERIES:
            cells = [
                _measured(stage, connection, headers, query, own=name == "tenant")
                for name, headers in callers.items()
            ]
            lines.append(f"| {title} | " + " | ".join(cells) + " |")
        connection.close()
    return "\n".join(lines)


def _measured(
    stage: Stage, connection: HTTPConnection, headers: dict[str, str], query: str, *, own: bool
) -> str:
    users = stage.users_per_tenant * (1 if own else stage.tenants)
    seconds, found = [], 0
    for turn in range(-WARM_UP, SEARCHES):
        number = turn * 7919 % users
        q = query.format(number=number, tenant=number // stage.users_per_tenant)
        started = time.perf_counter()
        connection.request("GET", f"/v1/search?{urlencode({'q': q})}", headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        if turn >= 0:
            seconds.append(time.perf_counter() - started)
        if answer.status != 200:
            raise SystemExit(f"{q}: {answer.status} {body.decode()}")
        found = len(json.loads(body)["data"])
    cuts = statistics.quantiles(seconds, n=100)
    return f"{cuts[49] * 1000:.1f} / {cuts[98] * 1000:.1f}, {found}"


def _writes(stage: Stage) -> str:
    """The processor time of writes, the service's and PostgreSQL's, with and without upkeep."""
    with contextlib.redirect_stderr(io.StringIO()):  # the log
        client = create_app(stage.environment).test_client()
        headers = credential(stage, subject(0))
        serial = _serial()
        cases: dict[str, Callable[[], None]] = {
            "PATCH of a user's name": lambda: _rename(client, headers, next(serial)),
            "creation of a user": lambda: _create(client, headers, next(serial)),
        }
        lines = ["| write | CPU ms without | with | share |", "|---|--:|--:|--:|"]
        for title, write in cases.items():
            without, with_upkeep = _compare(stage, write)
            share = with_upkeep / without - 1
            lines.append(f"| {title} | {without:.2f} | {with_upkeep:.2f} | {share:+.0%} |")
    return "\n".join(lines)


def _compare(stage: Stage, write: Callable[[], None]) -> tuple[float, float]:
    """Medians over the rounds, in milliseconds per write."""
    samples: dict[bool, list[float]] = {True: [], False: []}
    for number in range(-1, ROUNDS):
        for has_upkeep in (True, False) if number % 2 else (False, True):
            with ExitStack() as stack:
                if not has_upkeep:
                    for name in ("add", "follow"):
                        stack.enter_context(patch.object(writer, name, lambda *_: None))
                spent = _cpu_seconds(stage, write)
            if number >= 0:
                samples[has_upkeep].append(spent / WRITES * 1000)
    return statistics.median(samples[False]), statistics.median(samples[True])


def _cpu_seconds(stage: Stage, write: Callable[[], None]) -> float:
    postgres = psutil.Process(stage.postmaster())
    before = time.process_time() + tree_cpu_seconds(postgres)
    for _ in range(WRITES):
        write()
    return time.process_time() + tree_cpu_seconds(postgres) - before


def _serial() -> Iterator[int]:
    """Numbers that no earlier run has used."""
    start = time.time_ns() // 1_000_000
    while True:
        start += 1
        yield start


def _rename(client: FlaskClient, headers: dict[str, str], serial: int) -> None:
    path = f"/v1/users/{row_id(USER, serial % 100)}"
    answer = client.patch(path, headers=headers, json={"last_name": f"Last{serial}"})
    if answer.status_code != 200:
        raise SystemExit(f"{answer.status}: {answer.text}")


def _create(client: FlaskClient, headers: dict[str, str], serial: int) -> None:
    body = {
        "idp_user_id": f"new|{serial}",
        "email": f"new{serial}@tenant-0.example",
        "first_name": f"First{serial}",
        "last_name": f"Last{serial}",
    }
    answer = client.post("/v1/users", headers=headers, json=body)
    if answer.status_code != 201:
        raise SystemExit(f"{answer.status}: {answer.text}")

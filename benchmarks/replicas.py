"""``python -m benchmarks replicas``: what reads cost the primary, with no, one and two replicas.

The cost is the processor time of PostgreSQL's sessions of the service, the watching of the servers
included, but not of the processes that send and replay the WAL. The requests go through Flask's test
client, one after the other, so it does not depend on what else the machine does.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psutil
import psycopg2
from flask import Flask

from app import create_app
from app.core.db.replicas.reading import EXTENSION
from app.core.db.replicas.watch import State
from app.dev.engines.instance import OWNER_ROLE
from app.dev.engines.postgres import SUPERUSER
from app.extensions import db
from benchmarks import tokens
from benchmarks.dataset import TENANT, USER, fill, org_id, row_id, subject
from benchmarks.stage import PROJECT, Stage
from tests.cluster import Cluster, Node, cluster
from tests.running.serving import wait_until

TENANTS, USERS = 100, 100
REQUESTS, WARM_UP = 600, 60  # of each kind
SESSION = "controlplane_app"  # in the title of a session's process
READS: dict[str, tuple[str, str, Any]] = {
    "a user": ("GET", f"/v1/users/{row_id(USER, 1)}", None),
    "a page of 50 users": ("GET", "/v1/users?limit=50", None),
    "all flags": ("GET", "/v1/billing/flags", None),
    "OFREP, all flags": ("POST", "/ofrep/v1/evaluate/flags", {"context": {}}),
    "a search": ("GET", "/v1/search?q=user", None),
    "the tenant": ("GET", f"/v1/tenants/{row_id(TENANT, 0)}", None),
}


def report(stage: Stage) -> str:
    """A table of the reads, with the microseconds of each server's sessions for one request."""
    with cluster(standbys=2) as nodes:
        environment = {
            **stage.environment,
            "DATABASE_URL": nodes.primary.url(),
            "MIGRATION_DATABASE_URL": nodes.primary.url(OWNER_ROLE),
            "LOG_LEVEL": "ERROR",
        }
        command = [sys.executable, "-m", "flask", "--app", "wsgi", "db", "upgrade"]
        subprocess.run(command, cwd=PROJECT, env=environment, check=True, capture_output=True)
        with closing(psycopg2.connect(nodes.primary.url(SUPERUSER))) as session:
            fill(session, tenants=TENANTS, users_per_tenant=USERS)
        nodes.wait_for_replay()
        spent = [_spent(nodes, environment, number) for number in range(3)]
    lines = [
        "| read | alone: primary | one replica: primary + replica | two: primary + replicas |",
        "|---|--:|--:|--:|",
    ]
    for name in [*READS, "all"]:
        cells = [" + ".join(f"{each:.0f}" for each in found[name]) for found in spent]
        part = spent[2][name][0] / spent[0][name][0]
        lines.append(f"| {name} | {' | '.join(cells)} ({part:.0%} of alone) |")
    return "\n".join(["Microseconds of processor time for each read:", "", *lines])


def _spent(
    nodes: Cluster, environment: dict[str, str], replicas: int
) -> dict[str, tuple[float, ...]]:
    """The microseconds of the primary, and of the replicas together, for each of :data:`READS`."""
    urls = " ".join(node.url() for node in nodes.standbys[:replicas])
    headers = tokens.bearer(environment, subject=subject(0), org_id=org_id(0))
    found: dict[str, tuple[float, ...]] = {}
    with _application({**environment, "DATABASE_REPLICA_URLS": urls}) as app:
        client = app.test_client()

        def send(times: int, method: str, path: str, body: Any) -> None:
            for _ in range(times):
                answer = client.open(path, method=method, json=body, headers=headers)
                if answer.status_code != 200:
                    raise SystemExit(f"{answer.status}: {answer.text}")

        for name, read in READS.items():
            send(WARM_UP, *read)
            before = [_seconds(node) for node in nodes.nodes]
            send(REQUESTS, *read)
            used = [
                (_seconds(node) - start) * 1e6 / REQUESTS
                for node, start in zip(nodes.nodes, before, strict=True)
            ]
            found[name] = (used[0], sum(used[1:])) if replicas else (used[0],)
    values = list(found.values())
    found["all"] = tuple(sum(column) / len(values) for column in zip(*values, strict=True))
    return found


@contextlib.contextmanager
def _application(environment: dict[str, str]) -> Iterator[Flask]:
    with contextlib.redirect_stderr(io.StringIO()):  # the log
        app = create_app(environment, with_commands=False)
        replicas = app.extensions.get(EXTENSION)
        if replicas is not None:
            replicas.start()
            wait_until(lambda: all(each.state is State.OK for each in replicas.all))
        yield app
        if replicas is not None:
            replicas.stop()
        with app.app_context():
            for engine in db.engines.values():
                engine.dispose()


def _seconds(node: Node) -> float:
    """The processor time of the service's sessions at a node."""
    total = 0.0
    postmaster = node.process()
    for process in postmaster.children() if postmaster else ():
        with contextlib.suppress(psutil.NoSuchProcess):
            if SESSION in " ".join(process.cmdline()):
                total += sum(process.cpu_times()[:2])
    return total

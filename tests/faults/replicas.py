"""Standbys freeze, lag, die and are promoted under load: no request fails, and no read is stale.

Each reader also writes: it counts in a user's metadata. A read that sends back the token of the last
change has to show that change. One without a token has to show every change that was answered
REPLICA_MAX_LAG before it began.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, cycle
from typing import Any

from flask import Flask

from app.core.db.replicas.reading import HEADER
from app.core.db.replicas.watch import State
from app.dev.engines.instance import DATABASE
from tests import factories
from tests.cluster import Node
from tests.replicas import Replicated, messages, replicated

READS_PER_CHANGE = 9
PAUSE = 0.01  # seconds after each read
SPOIL = "UPDATE users SET meta_data = '{\"n\": -1}'"  # what only the promoted standby has


@dataclass
class Report:
    """What happened."""

    faults: Counter[str] = field(default_factory=Counter)
    reads: int = 0
    with_token: int = 0
    changes: int = 0
    answered_by: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    failed: list[Any] = field(default_factory=list)
    stale: list[Any] = field(default_factory=list)
    seconds: float = 0.0


def prove(
    _app: Flask, environment: Mapping[str, str], *, reads: int = 50_000, readers: int = 4
) -> Report:
    """Read at least ``reads`` times, and until each fault has occurred.

    AssertionError where a request fails or a read is stale.
    """
    report, started = Report(), time.monotonic()
    with replicated(environment, standbys=3) as world, messages() as sent:
        with _faults(world, report) as occurred:
            arguments = (world, reads // readers, occurred, report)
            threads = [threading.Thread(target=_read, args=arguments) for _ in range(readers)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        servers = (server for server, name in sent if name == "users.get")
        report.answered_by.update(server.partition("_")[0] for server in servers)
    report.seconds = time.monotonic() - started
    assert report.failed == []
    assert report.stale == []
    return report


def _read(world: Replicated, reads: int, occurred: threading.Event, report: Report) -> None:
    """Change one user and read it, in turn with a token and without."""
    tenant = factories.create_tenant()
    user, (_, _, token) = factories.create_user(tenant), factories.create_member(tenant)
    path, client = f"/v1/users/{user.id}", world.app.test_client()
    headers = {"Authorization": f"Bearer {token}"}
    written: list[tuple[float, int]] = []  # when the answer came, and the number
    position = ""
    for turn in count():
        if turn >= reads and occurred.is_set():
            return
        if turn % READS_PER_CHANGE == 0:
            body = {"patches": {"n": turn}}
            answer = client.patch(f"{path}/meta_data", json=body, headers=headers)
            report.changes += 1
            if answer.status_code != 200:
                report.failed.append((answer.status_code, answer.text))
                continue
            position = answer.headers[HEADER]
            written.append((time.monotonic(), turn))
        began = time.monotonic()
        with_token = turn % 2 == 0
        sent = headers | ({HEADER: position} if with_token else {})
        answer = client.get(path, headers=sent)
        report.slowest = max(report.slowest, time.monotonic() - began)
        report.reads += 1
        report.with_token += with_token
        oldest = began - (0 if with_token else world.replicas.max_lag)
        due = [number for moment, number in written if moment <= oldest]
        if answer.status_code != 200:
            report.failed.append((answer.status_code, answer.text))
        elif due and answer.get_json()["data"]["meta_data"].get("n", -1) < due[-1]:
            report.stale.append((turn, answer.text, due[-1], with_token))
        written = written[-500:]
        time.sleep(PAUSE)


@contextmanager
def _faults(world: Replicated, report: Report) -> Iterator[threading.Event]:
    """One fault after the other while the block runs; after the first three a standby is promoted.

    The event is set once each fault has occurred.
    """
    stop, occurred = threading.Event(), threading.Event()
    *nodes, promoted = world.cluster.standbys
    kinds = {"frozen": _frozen, "lagging": _lagging, "stopped": _stopped}

    def run() -> None:
        dice = random.Random(1)
        for kind in cycle(kinds):
            if stop.wait(dice.uniform(0.2, 1)):
                return
            victims = dice.sample(nodes, dice.choice((1, 1, 2)))
            with kinds[kind](victims):
                report.faults[kind] += len(victims)
                stop.wait(dice.uniform(0.5, 4))
            if not occurred.is_set() and kind == "stopped":
                promoted.execute("SELECT pg_promote(wait_seconds => 60)")
                promoted.execute(SPOIL, database=DATABASE)
                report.faults["promoted"] += 1
                occurred.set()

    def run_to_the_end() -> None:
        try:
            run()
        finally:
            occurred.set()  # the readers must not wait for what has failed

    thread = threading.Thread(target=run_to_the_end)
    thread.start()
    try:
        yield occurred
    finally:
        stop.set()
        thread.join()
    world.wait_for(State.OK, *nodes)  # whatever has happened to them
    world.wait_for(State.PRIMARY, promoted)


@contextmanager
def _frozen(nodes: list[Node]) -> Iterator[None]:
    for node in nodes:
        node.freeze()
    yield
    for node in nodes:
        node.unfreeze()


@contextmanager
def _lagging(nodes: list[Node]) -> Iterator[None]:
    for node in nodes:
        node.pause_replay()
    yield
    for node in nodes:
        node.resume_replay()


@contextmanager
def _stopped(nodes: list[Node]) -> Iterator[None]:
    for node in nodes:
        node.kill()
    yield
    for node in nodes:
        node.start()

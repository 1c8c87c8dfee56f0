"""Writers commit late or roll back, and sequencers are killed at random moments, while readers read
the feed: each reader gets each committed change once, at positions without gaps, and nothing else.

Senders are killed too. Each of three webhook endpoints gets each committed change, some of them
twice, with the same ``webhook-id``.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from flask import Flask
from redis import Redis

from app import create_app
from app.core.actors import SYSTEM_CLI
from app.extensions import db
from app.users import service as users
from app.users.models import User
from app.webhook_endpoints import service as webhook_endpoints
from tests import factories
from tests.database import platform_transaction, query
from tests.faults import _worker
from tests.webhook_deliveries.receiving import receiver

READERS = 4
PROCESSES = 2  # sequencers, and as many senders
ENDPOINTS = 3
LEASE = 5  # seconds after which the deliveries of a killed sender are made again
PATIENCE = 180  # seconds that the events of the last changes may take


class RolledBack(Exception):
    """A writer gives up."""


@dataclass
class Report:
    """What happened."""

    committed: set[str] = field(default_factory=set)
    rolled_back: int = 0
    kills: int = 0
    pages: int = 0
    delivered: int = 0
    duplicates: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"{len(self.committed)} changes committed, {self.rolled_back} rolled back,"
            f" {self.kills} kills of sequencers and senders: {READERS} readers got each position"
            f" once, without gaps, in {self.pages} pages; {ENDPOINTS} endpoints got each event,"
            f" {self.duplicates} of {self.delivered} deliveries again; {self.seconds:.0f} s"
        )


def prove(
    app: Flask,
    environment: Mapping[str, str],
    *,
    changes: int = 10_000,
    kills: int = 50,
    writers: int = 12,
) -> Report:
    """Write, kill and read; AssertionError where a reader misses or repeats anything."""
    report, started = Report(), time.monotonic()
    wide = create_app({**environment, "DB_POOL_SIZE": str(writers + READERS + 2)})
    factories.bind(wide)
    people = [factories.create_user(factories.create_tenant()) for _ in range(writers)]
    readers = [_Reader(wide, report) for _ in range(READERS)]
    per_writer = changes // writers
    with ExitStack() as hooks:
        receivers = [hooks.enter_context(receiver()) for _ in range(ENDPOINTS)]
        for one in receivers:
            _create_endpoint(one.url)
        with _together([one.run for one in readers], until=lambda: _all_read(readers, report)):
            with _together([_writer(wide, one, per_writer, report) for one in people]):
                _kill_processes(environment, kills, report)
            for start in STARTS:
                hooks.callback(start(environment).kill)
        _wait(lambda: all(len(set(one.ids)) >= len(report.committed) for one in receivers))
        _wait(lambda: not _undelivered())
    factories.bind(app)
    with wide.app_context():
        db.engine.dispose()
    report.seconds = time.monotonic() - started
    for reader in readers:
        first = reader.positions[0]
        assert reader.positions == list(range(first, first + len(report.committed)))
        assert sorted(reader.names) == sorted(report.committed)
        assert reader.names == readers[0].names
    for one in receivers:
        bodies: dict[str, str] = {}
        for received in one.received:
            name = json.loads(received.body)["data"]["first_name"]
            assert bodies.setdefault(received.id, name) == name
        assert sorted(bodies.values()) == sorted(report.committed)
        report.delivered += len(one.received)
        report.duplicates += len(one.received) - len(bodies)
    return report


def _create_endpoint(url: str) -> None:
    with platform_transaction():
        webhook_endpoints.create(url=url, types=["user.updated"], actor=SYSTEM_CLI)


def _undelivered() -> int:
    found = "SELECT count(*) AS number FROM webhook_deliveries WHERE status <> 'succeeded'"
    return query(found)[0].number


class _Reader:
    """Reads the feed from where it is now, in pages of random sizes."""

    def __init__(self, app: Flask, report: Report) -> None:
        self._client = app.test_client()
        self._headers = {"Authorization": f"Bearer {factories.platform_token()}"}
        self._report = report
        (feed,) = query("SELECT coalesce(max(last_position), 0) AS last FROM event_feed")
        self._after = feed.last
        self.positions: list[int] = []
        self.names: list[str] = []

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            asked = {"after": self._after, "limit": random.randint(1, 50), "types": "user.updated"}
            asked["wait"] = random.choice([0, 0, 1])
            answer = self._client.get("/v1/events", query_string=asked, headers=self._headers)
            assert answer.status_code == 200, answer.text
            page = answer.get_json()
            self.positions += [event["position"] for event in page["data"]]
            self.names += [event["data"]["first_name"] for event in page["data"]]
            self._after = page["next_cursor"] or self._after
            self._report.pages += 1


def _writer(
    app: Flask, user: User, changes: int, report: Report
) -> Callable[[threading.Event], None]:
    """A function that changes the user, and commits some of the changes late or not at all."""

    def write(stop: threading.Event) -> None:
        dice = random.Random(str(user.id))
        for number in range(changes):
            name = f"{user.id} {number}"
            with suppress(RolledBack), platform_transaction():
                users.update(user.id, {"first_name": name}, actor=SYSTEM_CLI)
                if dice.random() < 0.1:
                    time.sleep(dice.random() * 0.3)
                if dice.random() < 0.1:
                    report.rolled_back += 1
                    raise RolledBack
                report.committed.add(name)

    return write


STARTS = (_worker.start_sequencer, partial(_worker.start_sender, lease=LEASE))


def _kill_processes(environment: Mapping[str, str], kills: int, report: Report) -> None:
    """Let some sequencers and senders run at a time, and kill one after the other.

    Half-way Redis is emptied.
    """
    alive = {start: [start(environment) for _ in range(PROCESSES)] for start in STARTS}
    while report.kills < kills:
        before = _position()
        _wait(lambda before=before: _position() != before or not _waiting())
        time.sleep(random.uniform(0, 0.2))
        start = STARTS[report.kills % len(STARTS)]
        alive[start].pop(random.randrange(PROCESSES)).kill()
        alive[start].append(start(environment))
        report.kills += 1
        if report.kills == kills // 2:
            Redis.from_url(environment["REDIS_URL"]).flushall()
    for process in chain(*alive.values()):
        process.kill()


def _position() -> int:
    return sum(feed.last_position for feed in query("SELECT last_position FROM event_feed"))


def _waiting() -> int:
    return query("SELECT count(*) AS number FROM event_outbox")[0].number


def _all_read(readers: list[_Reader], report: Report) -> None:
    _wait(lambda: all(len(one.names) >= len(report.committed) for one in readers))
    time.sleep(0.5)  # something superfluous may come


@contextmanager
def _together(
    works: list[Callable[[threading.Event], None]], *, until: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Run functions in threads during the block, and ``until`` after it; then tell them to stop."""
    stop, faults = threading.Event(), []

    def run(work: Callable[[threading.Event], None]) -> None:
        try:
            work(stop)
        except BaseException as fault:
            faults.append(fault)
            raise

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
        until()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert faults == []


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "nothing happened for too long"
        time.sleep(0.02)

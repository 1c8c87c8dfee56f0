"""Writers commit late or roll back, while sequencers, senders and workers are killed, Redis is emptied
and PostgreSQL is restarted: each reader of the feed gets each committed change once, at positions
without gaps, and nothing else.

Each of three webhook endpoints gets each committed change, few of them twice, with the same
``webhook-id``.
"""

import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from multiprocessing.context import ForkServerProcess

import psycopg2
from flask import Flask
from redis import Redis
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.core.actors import SYSTEM_CLI
from app.core.jobs.queues import Queue
from app.users import service as users
from app.users.models import User
from app.webhooks.endpoints import service as webhook_endpoints
from tests import factories
from tests.database import platform_transaction, query
from tests.faults import _worker
from tests.faults._engines import PrivateEngines, private_engines
from tests.webhooks.deliveries.receiving import Receiver, receiver

READERS = 4
PROCESSES = 2  # of each kind
ENDPOINTS = 3
LEASE = 5  # seconds after which the deliveries of a killed sender are made again
PATIENCE = 180  # seconds that the events of the last changes may take
ROLLED_BACK = 0.1  # of all changes
LATE = 0.1
FAULTS = (psycopg2.Error, PoolTimeout)  # while PostgreSQL restarts


class RolledBack(Exception):
    """A writer gives up."""


@dataclass
class Report:
    """What happened."""

    committed: set[str] = field(default_factory=set)
    rolled_back: int = 0
    kills: int = 0
    restarts: int = 0
    pages: int = 0
    delivered: int = 0
    duplicates: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"{len(self.committed)} changes committed, {self.rolled_back} rolled back,"
            f" {self.kills} kills of sequencers, senders and workers, {self.restarts} restarts of"
            f" PostgreSQL, Redis emptied once: {READERS} readers got each position"
            f" once, without gaps, in {self.pages} pages; {ENDPOINTS} endpoints got each event,"
            f" {self.duplicates} of {self.delivered} deliveries again"
            f" ({self.duplicates / self.delivered:.2%}); {self.seconds:.0f} s"
        )


def prove(
    app: Flask,
    environment: Mapping[str, str],
    *,
    changes: int = 10_000,
    kills: int = 50,
    writers: int = 12,
) -> Report:
    """Write, kill and read; AssertionError where a reader misses or repeats anything.

    It runs on engines of its own, which ``app`` does not use.
    """
    report, started = Report(), time.monotonic()
    pool = {"DB_POOL_SIZE": str(writers + READERS + 2), "DB_POOL_TIMEOUT": "60"}
    with private_engines(**pool) as found, ExitStack() as hooks:
        receivers = [hooks.enter_context(receiver()) for _ in range(ENDPOINTS)]
        _prove(found, receivers, report, changes, kills, writers)
    report.seconds = time.monotonic() - started
    return report


def _prove(
    found: PrivateEngines,
    receivers: list[Receiver],
    report: Report,
    changes: int,
    kills: int,
    writers: int,
) -> None:
    people = [factories.create_user(factories.create_tenant()) for _ in range(writers)]
    readers = [_Reader(found.app, report) for _ in range(READERS)]
    for one in receivers:
        _create_endpoint(one.url)
    expected = int(changes * (1 - ROLLED_BACK) * ENDPOINTS)
    progress = partial(_share_received, receivers, expected)
    with (
        _together([one.run for one in readers], until=lambda: _all_read(readers, report)),
        ExitStack() as hooks,
    ):
        with _together([_writer(found.app, one, changes // writers, report) for one in people]):
            _kill_processes(found, kills, report, progress)
        for start in STARTS:
            hooks.callback(_worker.kill, start(found.environment))
        _wait(lambda: all(len(set(one.ids)) >= len(report.committed) for one in receivers))
        _wait(lambda: not _undelivered())
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


def _share_received(receivers: list[Receiver], expected: int) -> float:
    return sum(len(one.received) for one in receivers) / expected


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
            answer = self._client.get("/v1/events", query_string=asked, headers=self._headers)
            if answer.status_code == 503:  # PostgreSQL restarts
                time.sleep(0.2)
                continue
            assert answer.status_code == 200, answer.text
            page = answer.get_json()
            self.positions += [event["position"] for event in page["data"]]
            self.names += [event["data"]["first_name"] for event in page["data"]]
            self._after = page["next_cursor"] or self._after
            self._report.pages += 1
            time.sleep(0.02)


def _writer(
    app: Flask, user: User, changes: int, report: Report
) -> Callable[[threading.Event], None]:
    """A function that changes the user, and commits some of the changes late or not at all."""

    def write(stop: threading.Event) -> None:
        dice = random.Random(str(user.id))
        for number in range(changes):
            name = f"{user.id} {number}"
            try:
                with platform_transaction():
                    users.update(user.id, {"first_name": name}, actor=SYSTEM_CLI)
                    if dice.random() < LATE:
                        time.sleep(dice.random() * 0.3)
                    if dice.random() < ROLLED_BACK:
                        raise RolledBack
            except RolledBack:
                report.rolled_back += 1
                continue
            except FAULTS:  # whether it was committed is known afterwards
                if _stored_name(user) != name:
                    continue
            report.committed.add(name)

    return write


def _stored_name(user: User) -> str:
    names: list[str] = []

    def read() -> bool:
        names[:] = [
            row.first_name for row in query(f"SELECT first_name FROM users WHERE id = '{user.id}'")
        ]
        return bool(names)

    _wait(read)
    return names[0]


def _start_worker(environment: Mapping[str, str]) -> ForkServerProcess:
    return _worker.start(environment, list(Queue))


STARTS = (_worker.start_sequencer, partial(_worker.start_sender, lease=LEASE), _start_worker)


def _kill_processes(
    found: PrivateEngines, kills: int, report: Report, progress: Callable[[], float]
) -> None:
    """Let some processes of each kind run at a time, and kill one after the other.

    The kills are spread over the deliveries. Half-way Redis is emptied, later PostgreSQL restarts.
    """
    environment = found.environment
    alive = {start: [start(environment) for _ in range(PROCESSES)] for start in STARTS}
    try:
        while report.kills < kills:
            share = 0.9 * report.kills / kills
            _wait(lambda share=share: progress() >= share)
            time.sleep(random.uniform(0, 0.2))
            start = STARTS[report.kills % len(STARTS)]
            _worker.kill(alive[start].pop(random.randrange(PROCESSES)))
            alive[start].append(start(environment))
            report.kills += 1
            if report.kills == kills // 2:
                Redis.from_url(environment["REDIS_URL"]).flushall()
            if report.kills == kills * 2 // 3:
                found.restart_postgres()
                report.restarts += 1
    finally:
        for process in chain(*alive.values()):
            _worker.kill(process)


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
    while True:
        with suppress(*FAULTS):
            if condition():
                return
        assert time.monotonic() < deadline, "nothing happened for too long"
        time.sleep(0.05)

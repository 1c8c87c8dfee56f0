"""Events are written to buckets and to an https target, while writers and sequencers are killed or
frozen, PostgreSQL restarts, and targets refuse, are slow, lose answers or are down for seconds.

The buckets have each event once, at positions without gaps; the https target has each event at least
once, and for the first time in order. A tenant's bucket has its own events only. One dead target of
20 delays no other. One process writes 5,000 events a second to S3.
"""

import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from multiprocessing.context import ForkServerProcess
from typing import Any, TypeVar

import psutil
from flask import Flask

from app.log_streams.runner import run_log_streams
from app.tenants.models import Tenant
from tests import factories
from tests.database import execute, query
from tests.faults import _worker
from tests.faults._engines import PrivateEngines, private_engines
from tests.faults.events import _wait
from tests.log_streams.s3_server import s3_server
from tests.log_streams.support import change
from tests.webhooks.deliveries.receiving import Received, Receiver, receiver

T = TypeVar("T")
PROCESSES = 2  # that write
LEASE = 3  # seconds after which the streams of a killed writer are written again
OUTAGE = 4  # seconds
FROZEN = 0.2  # of all kills only freeze, for longer than the lease
STREAMS, DEAD_FOR = 20, 15.0  # one of them answers nothing for so many seconds
COPY = (
    "INSERT INTO event_outbox (tenant_id, id, created_at, type, actor, is_platform_actor,"
    " request_id, traceparent, before, after, data)"
    " SELECT tenant_id, gen_random_uuid(), clock_timestamp(), type, actor, is_platform_actor,"
    " request_id, traceparent, before, after, data"
    " FROM generate_series(1, :count), (SELECT * FROM events WHERE type = 'user.updated'"
    " ORDER BY position LIMIT 2) AS templates"
)


@dataclass
class Report:
    """What happened."""

    events: int = 0
    kills: int = 0
    freezes: int = 0
    restarts: int = 0
    objects: int = 0
    overwritten: int = 0
    repeated: int = 0
    slowest: float = 0.0
    rate: float = 0.0
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.events} events; {self.kills} kills and {self.freezes} freezes of writers and"
            f" sequencers, {self.restarts} restarts of PostgreSQL: the buckets have each event once"
            f" in {self.objects} objects, of which retries overwrote {self.overwritten}; the https"
            f" target has each in order, {self.repeated} more than once; with one dead target of"
            f" {STREAMS}, the others got an event within {self.slowest:.1f} s;"
            f" {self.rate:,.0f} events a second to S3 from one process; {self.seconds:.0f} s"
        )


def prove(
    app: Flask,
    environment: Mapping[str, str],
    *,
    events: int = 100_000,
    kills: int = 50,
    streams: int = STREAMS,
    dead_for: float = DEAD_FOR,
) -> Report:
    """Write amid faults; AssertionError where a target lacks or a bucket repeats an event.

    It runs on engines of its own, which ``app`` does not use.
    """
    report, started = Report(), time.monotonic()
    with private_engines(DB_POOL_SIZE="8", DB_POOL_TIMEOUT="60") as found:
        tenants = [factories.create_tenant() for _ in range(2)]
        for tenant in tenants:
            change(found.app, factories.create_user(tenant), "Ada")
        _prove_faults(found, tenants, report, events, kills)
        _prove_rate(found, report)
        _prove_dead_target(found, report, streams, dead_for)
    report.seconds = time.monotonic() - started
    return report


def _prove_faults(
    found: PrivateEngines, tenants: list[Tenant], report: Report, events: int, kills: int
) -> None:
    dice = random.Random(1)
    with ExitStack() as hooks:
        buckets = [hooks.enter_context(s3_server()) for _ in range(2)]
        target = hooks.enter_context(receiver())
        for bucket in buckets:
            bucket.judge = _Faults(dice).of_s3
            bucket.delay = lambda: dice.choice([0.0] * 9 + [0.5])
            bucket.loses_answer = lambda: dice.random() < 0.05
        target.judge, target.headers = _Faults(dice).of_https, {"Retry-After": "1"}
        (before,) = query("SELECT last_position AS last FROM event_feed")
        _create("s3", buckets[0].config)
        _create("s3", buckets[1].config, tenants[1])
        _create("https", {"url": target.url})
        writing = threading.Thread(target=_write_events, args=(events,))
        writing.start()
        accepted = _Accepted(target)
        _kill_processes(
            found, kills, report, lambda: accepted.count() / events, hooks=hooks, dice=dice
        )
        writing.join()
        _wait(lambda: accepted.count() >= events)
        expected = [
            _retried(lambda: query(EVENTS, first=before.last)),
            _retried(lambda: query(OWN, first=before.last, id=tenants[1].id)),
        ]
        for bucket, rows in zip(buckets, expected, strict=True):
            _wait(lambda bucket=bucket, rows=rows: len(bucket.lines()) >= len(rows))
        time.sleep(LEASE)  # something superfluous may come
    report.events = events
    for bucket, rows in zip(buckets, expected, strict=True):
        records = [json.loads(line) for line in bucket.lines()]
        assert [one["id"] for one in records] == [f"evt_{one.id.hex}" for one in rows]
        report.objects += len(bucket.objects)
        report.overwritten += bucket.puts - len(bucket.objects)
    positions = [json.loads(line)["position"] for line in buckets[0].lines()]
    assert positions == [one.position for one in expected[0]]
    got = accepted.positions()
    assert list(dict.fromkeys(got)) == positions
    report.repeated = len(got) - len(positions)


EVENTS = "SELECT id, position FROM events WHERE type = 'user.updated' AND position > :first ORDER BY position"
OWN = (
    "SELECT id FROM events WHERE type = 'user.updated' AND position > :first"
    " AND tenant_id = :id ORDER BY position"
)


class _Faults:
    """Some refusals, and an outage from time to time."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._down_until = 0.0

    def of_s3(self, name: str) -> tuple[int, str] | None:
        status = self._status()
        return None if status == 200 else (status, "SlowDown")

    def of_https(self, received: Received) -> int:
        time.sleep(self._dice.choice([0.0] * 9 + [0.5]))
        return self._status()

    def _status(self) -> int:
        if time.monotonic() < self._down_until:
            return 503
        if self._dice.random() < 0.01:
            self._down_until = time.monotonic() + OUTAGE
        return self._dice.choice([200] * 18 + [429, 503])


class _Accepted:
    """The batches that the https target accepted. The judge's answers are not stored, so count here."""

    def __init__(self, target: Receiver) -> None:
        self._bodies: list[bytes] = []
        self._known: set[int] = set()
        judge: Any = target.judge

        def judged(received: Received) -> int:
            status: int = judge(received)
            if status == 200:
                self._bodies.append(received.body)
                self._known |= {json.loads(line)["position"] for line in received.body.splitlines()}
            return status

        target.judge = judged

    def count(self) -> int:
        return len(self._known)

    def positions(self) -> list[int]:
        return [json.loads(line)["position"] for body in self._bodies for line in body.splitlines()]


def _write_events(events: int) -> None:
    for _ in range(events // 200):
        _retried(lambda: execute(COPY, count=100))


def _retried(work: Callable[[], T]) -> T:
    """Do the work, also while PostgreSQL restarts. A commit whose answer was lost is done twice."""
    done: list[T] = []

    def attempt() -> bool:
        done.append(work())
        return True

    _wait(attempt)
    return done[-1]


def _create(kind: str, config: dict[str, Any], tenant: Tenant | None = None) -> Any:
    owner = None if tenant is None else tenant.id
    return factories.create_log_stream(
        owner, kind=kind, config=config, types=["user.updated"], state="active"
    )


STARTS = (partial(_worker.start_log_streams, lease=LEASE), _worker.start_sequencer)


def _kill_processes(
    found: PrivateEngines,
    kills: int,
    report: Report,
    progress: Callable[[], float],
    *,
    hooks: ExitStack,
    dice: random.Random,
) -> None:
    """Kill or freeze one process after the other, spread over what is written.

    PostgreSQL restarts half-way. New processes run until the end of ``hooks``.
    """
    alive = {start: [start(found.environment) for _ in range(PROCESSES)] for start in STARTS}
    hooks.callback(lambda: [_worker.kill(one) for one in chain(*alive.values())])
    while report.kills + report.freezes < kills:
        share = 0.9 * (report.kills + report.freezes) / kills
        _wait(lambda share=share: progress() >= share)
        time.sleep(dice.uniform(0, 0.3))
        start = STARTS[0] if dice.random() < 0.8 else STARTS[1]
        place = dice.randrange(PROCESSES)
        if start is STARTS[0] and dice.random() < FROZEN:
            _freeze(alive[start][place])
            report.freezes += 1
        else:
            _worker.kill(alive[start].pop(place))
            alive[start].append(start(found.environment))
            report.kills += 1
        if report.restarts == 0 and report.kills + report.freezes >= kills / 2:
            found.restart_postgres()
            report.restarts += 1


def _freeze(process: ForkServerProcess) -> None:
    """Freeze a process for longer than its lease, whatever else happens."""
    one = psutil.Process(process.pid)
    one.suspend()
    threading.Timer(LEASE + 1, _thaw, [one]).start()


def _thaw(one: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):  # it was killed
        one.resume()


def _prove_rate(found: PrivateEngines, report: Report) -> None:
    """From the beginning of the feed, by the usual batches, in this process."""
    _retried(lambda: execute("DELETE FROM log_streams"))
    with s3_server() as bucket, _writer(found.app):
        started = time.monotonic()
        factories.create_log_stream(
            kind="s3", config=bucket.config, types=["*"], state="active", start="beginning"
        )
        (feed,) = query("SELECT count(*) AS events FROM events")
        stored = "SELECT position FROM log_stream_progress"
        last = "SELECT max(position) AS last FROM events"
        _wait(lambda: query(stored)[0].position >= query(last)[0].last)
        report.rate = feed.events / (time.monotonic() - started)
        assert len(bucket.lines()) >= feed.events


def _prove_dead_target(found: PrivateEngines, report: Report, number: int, dead_for: float) -> None:
    execute("DELETE FROM log_streams")
    with ExitStack() as hooks:
        targets = [hooks.enter_context(receiver()) for _ in range(number)]
        targets[0].delay = dead_for
        tenants = [factories.create_tenant() for _ in range(number)]
        for target, tenant in zip(targets, tenants, strict=True):
            _create("https", {"url": target.url}, tenant)
            change(found.app, factories.create_user(tenant), "Ada")
        with _writer(found.app):
            started = time.monotonic()
            for _ in range(3):
                execute(
                    "UPDATE log_stream_progress SET next_attempt_at = now() WHERE claim IS NULL"
                )
            _wait(lambda: all(one.received for one in targets[1:]))
            report.slowest = time.monotonic() - started
            assert targets[0].received == []
            assert report.slowest < dead_for / 2


@contextmanager
def _writer(app: Flask) -> Iterator[None]:
    """A writer in a thread of this process."""
    stopped = threading.Event()
    thread = threading.Thread(target=run_log_streams, args=(app,), kwargs={"stop": stopped.is_set})
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()

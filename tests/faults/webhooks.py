"""Signed events are posted while the worker is killed every second, Redis is away and comes back
empty, and PostgreSQL is restarted: every event that was answered 200 is applied exactly once, the
others were answered 503, and nothing else was answered.

Most events are opens of a few messages, whose counters tell how often each was applied; the others
each make a tenant, with its row in the audit trail. Some are posted twice.
"""

import http.client
import itertools
import json
import random
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import psycopg2
from flask import Flask

from app import create_app
from app.core.jobs.queues import Queue
from app.inbox.jobs import process_events
from app.inbox.providers import PATHS, Receiver
from app.inbox.signatures.sending import sign
from tests.database import query
from tests.faults import _worker
from tests.faults._engines import PrivateEngines, private_engines
from tests.ports import free_port
from tests.running.serving import HOST, answers, running, wait_until

MESSAGES = 50
THREADS = 6
PATIENCE = 300  # seconds that the work left may take, and that an answer may
SECRET = "whsec_ZmF1bHRzIGFyZSBtYWRlIG9uIHB1cnBvc2UgaGVyZQ=="


@dataclass
class Report:
    answers: Counter[int] = field(default_factory=Counter)
    accepted: dict[str, str] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    strange: list[Any] = field(default_factory=list)
    duplicates: int = 0
    applied: int = 0
    kills: int = 0
    postgres_restarts: int = 0
    redis_outages: int = 0
    seconds: float = 0

    def __str__(self) -> str:
        return (
            f"{len(self.accepted)} events answered 200 and applied exactly once"
            f" ({self.duplicates} of them posted twice), {len(self.refused)} answered 503,"
            f" {len(self.strange)} answered anything else; {self.kills} kills of the worker,"
            f" {self.postgres_restarts} restarts of PostgreSQL, {self.redis_outages} outages of"
            f" Redis, {self.seconds:.0f} s"
        )


def prove(
    app: Flask,
    environment: Mapping[str, str],
    *,
    events: int = 10_000,
    per_second: float = 100,
    redis_away: float = 20,
    postgres_restarts: int = 2,
    sweeping: bool = True,
) -> Report:
    """Post, break, wait, and count; AssertionError where anything is wrong.

    It runs on engines of its own, which ``app`` does not use. What is left at the end waits for
    the sweeper, or with ``sweeping`` false for a job that is pushed at once.
    """
    report, started = Report(), time.monotonic()
    with _installation() as installation, installation.worker(report):
        progress = _Progress(events)
        with _posting(installation, progress, report, per_second):
            _break(installation, progress, report, redis_away, postgres_restarts)
        installation.killing.clear()
        if not sweeping:
            _push_once(installation)
        _wait_for_the_inbox()
        _count(report)
    report.seconds = time.monotonic() - started
    assert report.strange == []
    assert len(report.accepted) + len(report.refused) == events
    assert report.applied == len(report.accepted)
    return report


@dataclass
class _Progress:
    """How many events have been taken to be posted, and which share of all may be by now."""

    total: int
    numbers: Iterator[int] = field(default_factory=itertools.count)
    taken: int = 0
    allowed: float = 1.0

    def wait_for(self, share: float) -> None:
        while self.taken < share * self.total:
            time.sleep(0.02)

    def wait_until_allowed(self, number: int) -> None:
        while number > self.allowed * self.total:
            time.sleep(0.02)


class _Installation:
    """The service as it runs in production, on engines that can be stopped one by one."""

    def __init__(self, found: PrivateEngines) -> None:
        self.environment = found.environment
        self.restart_postgres = found.restart_postgres
        self.redis = found.engines.redis
        self.port = free_port()
        self.killing = threading.Event()

    def lose_redis(self, seconds: float) -> None:
        """Stop it, forget what it held, and start it later."""
        self.redis.stop()
        for path in self.redis.data.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        time.sleep(seconds)
        self.redis.start()

    @contextmanager
    def worker(self, report: Report) -> Iterator[None]:
        """A worker at all times; while ``killing`` is set it lives for a second."""
        done = threading.Event()
        self.killing.set()
        first = _worker.start(self.environment, list(Queue))  # the imports take their time

        def keep() -> None:
            process = psutil.Process(first.pid)
            while not done.is_set():
                done.wait(1)
                while not self.killing.is_set() and process.is_running() and not done.is_set():
                    done.wait(0.2)
                _kill(process)
                report.kills += self.killing.is_set()
                process = psutil.Process(_worker.start(self.environment, list(Queue)).pid)
            _kill(process)

        thread = threading.Thread(target=keep)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


@contextmanager
def _installation() -> Iterator[_Installation]:
    settings = {
        "IDP_WEBHOOK_SECRETS": f"standard_webhooks:{SECRET}",
        "EMAIL_WEBHOOK_SECRETS": f"standard_webhooks:{SECRET}",
        "WEB_PROCESSES": "2",
    }
    with private_engines(**settings) as engines:
        found, environment = _Installation(engines), engines.environment
        folder = Path(environment["INSTANCE_DIR"])
        python = [sys.executable, "-m"]
        web = [*python, "gunicorn", "wsgi:app", f"--bind={HOST}:{found.port}"]
        scheduler = [*python, "flask", "--app", "wsgi", "jobs", "scheduler"]
        with (
            running(web, environ=environment, log=folder / "web.log"),
            running(scheduler, environ=environment, log=folder / "scheduler.log"),
        ):
            wait_until(lambda: answers(found.port, "/healthz") == 200)
            yield found


def _break(
    installation: _Installation,
    progress: _Progress,
    report: Report,
    redis_away: float,
    postgres_restarts: int,
) -> None:
    """PostgreSQL restarts first, Redis goes away, PostgreSQL restarts again."""
    progress.wait_for(0.15)
    for number in range(postgres_restarts):
        progress.allowed = (0.45, 0.9)[number]  # however long the restart takes
        try:
            installation.restart_postgres()
        finally:
            progress.allowed = 1.0
        report.postgres_restarts += 1
        if number == 0:
            progress.wait_for(0.3)
            installation.lose_redis(redis_away)
            report.redis_outages += 1
            progress.wait_for(0.75)


@contextmanager
def _posting(
    installation: _Installation, progress: _Progress, report: Report, per_second: float
) -> Iterator[None]:
    """Post everything from several threads while the block runs, and after it."""
    lock, begun = threading.Lock(), time.monotonic()

    def post() -> None:
        dice = random.Random()
        while True:
            with lock:
                number = next(progress.numbers)
            if number >= progress.total:
                return
            progress.wait_until_allowed(number)
            progress.taken = max(progress.taken, number)
            time.sleep(max(0.0, begun + number / per_second - time.monotonic()))
            receiver, body = _event(number)
            again = dice.random() < 0.05
            for attempt in range(2 if again else 1):
                status, answer = _send(installation.port, receiver, body, f"msg_{number}")
                with lock:
                    _note(report, f"msg_{number}", status, answer, is_second=attempt > 0)

    threads = [threading.Thread(target=post) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.join()


def _event(number: int) -> tuple[Receiver, bytes]:
    now = datetime.now(UTC).isoformat()
    if number % 10 == 0:
        data = {"id": f"org_{number}", "name": f"Company {number}"}
        body = {"type": "organization.created", "timestamp": now, "data": data}
        return Receiver.IDENTITY, json.dumps(body).encode()
    data = {"message_id": f"m{number % MESSAGES}", "recipient": "ada@acme.example"}
    body = {"type": "email.opened", "timestamp": now, "data": data}
    return Receiver.EMAIL, json.dumps(body).encode()


def _send(port: int, receiver: Receiver, body: bytes, message_id: str) -> tuple[int, Any]:
    signed = sign("standard_webhooks", SECRET, body, time.time(), message_id=message_id)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("POST", PATHS[receiver], signed.body, signed.headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def _note(report: Report, message_id: str, status: int, answer: Any, *, is_second: bool) -> None:
    """An event counts as accepted once any of its posts was answered 200."""
    report.answers[status] += 1
    if status == 200:
        known = report.accepted.setdefault(message_id, answer["event_id"])
        report.refused.discard(message_id)
        report.duplicates += is_second and answer["duplicate"]
        if known != answer["event_id"]:
            report.strange.append(("another id", message_id, answer))
    elif status == 503:
        if message_id not in report.accepted:
            report.refused.add(message_id)
    else:
        report.strange.append((status, answer))


def _push_once(installation: _Installation) -> None:
    app = create_app(installation.environment)
    with app.app_context():
        process_events.push()


def _wait_for_the_inbox() -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            ((left,),) = query("SELECT count(*) FROM webhook_events WHERE status = 'pending'")
        except psycopg2.OperationalError:
            left = -1  # the first statement on a connection that a restart has cut
        if left == 0:
            return
        assert time.monotonic() < deadline, f"{left} events are left"
        time.sleep(0.5)


def _count(report: Report) -> None:
    """Every effect against the events that it came from."""
    rows = {
        row.external_id: (str(row.id), row.status)
        for row in query("SELECT id, external_id, status FROM webhook_events")
    }
    opened = Counter(str(id_) for (id_,) in query("SELECT webhook_event_id FROM email_events"))
    opens = {
        row.message_id: row.opens for row in query("SELECT message_id, opens FROM email_messages")
    }
    tenants = Counter(id_ for (id_,) in query("SELECT idp_org_id FROM tenants"))
    created = "SELECT after->>'idp_org_id' FROM audit_events WHERE action = 'tenant.created'"
    audited = Counter(id_ for (id_,) in query(created))
    ((audits,),) = query("SELECT count(*) FROM audit_events")
    assert {status for _, status in rows.values()} <= {"succeeded"}
    assert rows.keys() >= report.accepted.keys()
    assert rows.keys() <= report.accepted.keys() | report.refused
    for message_id, event_id in report.accepted.items():
        number = int(message_id.removeprefix("msg_"))
        assert rows[message_id][0] == event_id
        applied = audited[f"org_{number}"] if number % 10 == 0 else opened[event_id]
        assert applied == 1, (message_id, applied)
        report.applied += applied
    expected = Counter(f"m{_number(name) % MESSAGES}" for name in rows if _number(name) % 10)
    assert opens == dict(expected)
    assert tenants == audited
    assert audits == sum(audited.values())


def _number(message_id: str) -> int:
    return int(message_id.removeprefix("msg_"))


def _kill(process: psutil.Process) -> None:
    """SIGKILL to the worker, and by chance to the process of its job."""
    try:
        children = process.children(recursive=True)
        process.kill()
        process.wait(10)
    except (psutil.NoSuchProcess, psutil.TimeoutExpired):
        return
    for child in children:
        if random.random() < 0.7:
            try:
                child.kill()
            except psutil.NoSuchProcess:
                continue

"""All processes of an installation start at once behind nginx and PgBouncer, and are killed at random
under load: each acknowledged change, receipt and delivery has its effect exactly once, a limit of
usage holds exactly, and a rate limit as closely as docs/operations/running.md says.

Pairs of clients send the same requests at the same time. What was not acknowledged is sent again.
"""

import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import httpx
import psutil
from flask import Flask

from app.core.actors import SYSTEM_CLI
from app.core.http.rate_counts import INTERVAL
from app.core.jobs.queues import Queue
from app.dev.engines.instance import Instance
from app.inbox.jobs import process_events
from app.usage.models import UsageCounter
from app.webhooks.endpoints import service as webhook_endpoints
from tests import factories
from tests.database import platform_transaction, row
from tests.faults import _worker
from tests.faults._engines import PrivateEngines, private_engines
from tests.faults._load import SETTINGS, Load, check_effects, wait_for_effects
from tests.ports import free_port
from tests.running.proxies import nginx, pgbouncer
from tests.running.serving import HOST, answers, program, running, wait_until
from tests.webhooks.deliveries.receiving import Receiver, receiver

WEB_PROCESSES = 8
POOLED = 20  # connections of PgBouncer to PostgreSQL
PEOPLE = 4
CONSUMERS = 4
PER_SECOND = 4  # units that all consumers together may use
HAMMERS = 4  # clients of one credential that send more than the rate limit admits
RATE, WINDOW = 30, 10  # requests of one credential per window of so many seconds
EXCHANGE = 1.0  # seconds that a process may take to exchange its counts on a busy machine
COUNTING = threading.Lock()
EVERY = 1.0  # seconds between two kills
LEASE = 5  # seconds after which a delivery that was claimed is made again
GATEWAY = (502, 504)  # what nginx answers for a process that was killed
STARTS: Mapping[str, tuple[int, Callable[[Mapping[str, str]], ForkServerProcess]]] = {
    "worker": (4, partial(_worker.start, queues=list(Queue))),
    "scheduler": (2, _worker.start_scheduler),
    "sequencer": (2, _worker.start_sequencer),
    "sender": (2, partial(_worker.start_sender, lease=LEASE)),
}


@dataclass
class Report:
    kills: Counter[str] = field(default_factory=Counter)
    changes: int = 0
    receipts: int = 0
    delivered: int = 0
    repeated: int = 0
    unknown: int = 0
    refused: int = 0
    consumed: int = 0
    admitted: Counter[int] = field(default_factory=Counter)  # by window
    sent: Counter[int] = field(default_factory=Counter)
    seconds: float = 0.0


def prove(
    app: Flask, environment: Mapping[str, str], *, seconds: float = 120, sweeping: bool = True
) -> Report:
    """Start, send, kill and count; AssertionError where anything is wrong.

    It runs on engines of its own, which ``app`` does not use. Events whose job was lost wait for
    the sweeper, or with ``sweeping`` false for a job that is pushed at once.
    """
    for name in ("nginx", "pgbouncer"):
        program(name)
    report, started = Report(), time.monotonic()
    settings = {
        **SETTINGS,
        "WEB_PROCESSES": str(WEB_PROCESSES),
        "DB_POOL_SIZE": "4",
        "TRUSTED_PROXIES": "1",
        "RATELIMIT_ENABLED": "1",
        "RATELIMIT_PLATFORM": f"{RATE}/{WINDOW} seconds",
    }
    with private_engines(**settings) as found, receiver() as endpoint:
        _prove(found, endpoint, report, seconds, sweeping)
    report.seconds = time.monotonic() - started
    return report


def _prove(
    found: PrivateEngines, endpoint: Receiver, report: Report, seconds: float, sweeping: bool
) -> None:
    units = int(seconds * PER_SECOND)
    factories.create_limits("free", factories.limit_flag("calls", units))
    tenants = [factories.create_tenant() for _ in range(PEOPLE)]
    members = [factories.create_member(tenant) for tenant in tenants]
    with platform_transaction():
        webhook_endpoints.create(url=endpoint.url, types=["user.updated"], actor=SYSTEM_CLI)
    consumer = factories.create_api_key(tenants[0], ["usage:write"])
    platform = factories.create_api_key(None, ["users:read"])
    with _installation(found) as installation:
        load = Load(installation.url, expected=GATEWAY)
        ends = time.monotonic() + seconds
        with (
            load.run({user.id: token for user, _, token in members}, together=2),
            ThreadPoolExecutor(CONSUMERS + HAMMERS) as pool,
        ):
            consumers = [
                pool.submit(_consume, installation.url, consumer, f"{number}")
                for number in range(CONSUMERS)
            ]
            hammers = [
                pool.submit(_hammer, installation.url, platform, report, ends)
                for _ in range(HAMMERS)
            ]
            while time.monotonic() < ends and load.strange == []:
                time.sleep(EVERY)
                report.kills[installation.kill()] += 1
            for hammer in hammers:
                hammer.result()
            report.consumed = sum(each.result() for each in consumers)
        if not sweeping:
            with found.app.app_context():
                process_events.push()
        wait_for_effects(load, endpoint)
    report.changes, report.receipts = len(load.changes), len(load.receipts)
    report.unknown, report.refused = load.unknown, len(load.refusals)
    report.delivered = len(endpoint.received)
    report.repeated = report.delivered - len(set(endpoint.ids))
    check_effects(load, endpoint)
    assert report.consumed == row(UsageCounter, feature="calls").used == units
    _check_rate(report)


def _whole(send: Callable[[], httpx.Response]) -> httpx.Response:
    """The answer; 502 for one that was cut, because its process was killed after the headers."""
    try:
        return send()
    except httpx.RemoteProtocolError:
        return httpx.Response(502)


def _consume(url: str, key: str, name: str) -> int:
    """Use one unit after the other until the limit is reached; how many were acknowledged."""
    with httpx.Client(
        base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60
    ) as client:
        for number in range(sys.maxsize):
            body = {"feature": "calls", "amount": 1, "idempotency_key": f"{name}-{number}"}
            post = partial(client.post, "/v1/usage/consume", json=body)
            while (answer := _whole(post)).status_code != 200:
                if answer.status_code == 409:
                    assert answer.json()["code"] == "limit_reached"
                    return number
                assert answer.status_code in (503, *GATEWAY), answer.text
                time.sleep(0.1)
    raise AssertionError("unreachable")


def _hammer(url: str, key: str, report: Report, ends: float) -> None:
    """Send more requests than the limit allows; nginx spreads them over the web processes."""
    with httpx.Client(
        base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60
    ) as client:
        while time.monotonic() < ends:
            window = int(time.time()) // WINDOW
            answer = _whole(partial(client.get, "/v1/users?limit=1"))
            assert answer.status_code in (200, 429, 503, *GATEWAY), answer.text
            with COUNTING:
                report.sent[window] += 1
                report.admitted[window] += answer.status_code != 429
            time.sleep(0.01)


def _check_rate(report: Report) -> None:
    """No window has admitted more than docs/operations/running.md allows, nor refused below the limit."""
    per_second = max(report.sent.values()) / WINDOW
    allowed = RATE + per_second * 2 * (INTERVAL + EXCHANGE) + WEB_PROCESSES
    killed = report.kills["web"] * per_second * INTERVAL / WEB_PROCESSES
    assert max(report.admitted.values()) <= allowed + killed, report
    for window, sent in report.sent.items():
        # Each hammer's request at the window's edge may count in the next one.
        assert report.admitted[window] >= min(sent, RATE) - HAMMERS, report


class _Installation:
    """Every process of the service, which is started again after it was killed."""

    def __init__(self, url: str, web: psutil.Process, environment: Mapping[str, str]) -> None:
        self.url = url
        self._web = web
        self._environment = environment
        self._others = {
            name: [start(environment) for _ in range(number)]
            for name, (number, start) in STARTS.items()
        }

    def kill(self) -> str:
        """Kill one process and start another for it; gunicorn does so itself. Tells its kind."""
        name = random.choice(["web", "web", "web", *STARTS])
        if name == "web":
            with suppress(psutil.NoSuchProcess, IndexError):
                random.choice(self._web.children()).kill()
            return name
        alive = self._others[name]
        _worker.kill(alive.pop(random.randrange(len(alive))))
        alive.append(STARTS[name][1](self._environment))
        return name

    def end(self) -> None:
        for alive in self._others.values():
            for process in alive:
                _worker.kill(process)


@contextmanager
def _installation(found: PrivateEngines) -> Iterator[_Installation]:
    """All processes, started at once."""
    folder = Path(found.environment["INSTANCE_DIR"])
    port = free_port()
    with ExitStack() as hooks:
        url = hooks.enter_context(pgbouncer(Instance.at(folder), folder, connections=POOLED))
        environment = {**found.environment, "DATABASE_URL": url}
        command = [sys.executable, "-m", "gunicorn", "wsgi:app", f"--bind={HOST}:{port}"]
        web = hooks.enter_context(running(command, environ=environment, log=folder / "web.log"))
        installation = _Installation("", psutil.Process(web.pid), environment)
        hooks.callback(installation.end)
        wait_until(lambda: answers(port, "/readyz") == 200)
        installation.url = f"http://{HOST}:{hooks.enter_context(nginx(port, folder))}"
        yield installation

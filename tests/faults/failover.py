"""The primary is killed again and again under load, the standby that is further on is promoted, and
the old primary rejoins: each change and receipt that was acknowledged is on the new primary, exactly
once. While there is no primary, and for less than five seconds after a promotion, requests are
answered 503 with Retry-After; nothing else goes wrong, and no process is restarted.

Each commit waits for one of two standbys.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from flask import Flask

from app import create_app
from app.core.actors import SYSTEM_CLI
from app.core.jobs.queues import Queue
from app.dev.engines.instance import OWNER_ROLE
from app.extensions import db
from app.inbox.jobs import process_events
from app.webhooks.endpoints import service as webhook_endpoints
from tests import factories
from tests.cluster import Cluster, cluster
from tests.database import platform_transaction
from tests.faults import _worker
from tests.faults._load import SETTINGS, Load, check_effects, wait_for_effects
from tests.ports import free_port
from tests.running.serving import HOST, answers, running, wait_until
from tests.webhooks.deliveries.receiving import Receiver, receiver

KILLS = 10
PEOPLE = 4
BETWEEN = 2.0  # seconds of load before each kill
NOTICED = 0.5  # seconds until the kill is noticed and a standby promoted
ALLOWED = 5.0  # seconds
LEASE = 5  # seconds after which a delivery that was claimed is made again


@dataclass
class Report:
    kills: int = 0
    rejoined: Counter[str] = field(default_factory=Counter)
    changes: int = 0
    receipts: int = 0
    refused: int = 0
    delivered: int = 0
    longest_refusing: float = 0.0  # seconds from a promotion to the last 503
    longest_without: float = 0.0  # seconds from a kill to the next success
    seconds: float = 0.0


def prove(
    app: Flask,
    environment: Mapping[str, str],
    *,
    kills: int = KILLS,
    allowed: float = ALLOWED,
    sweeping: bool = True,
) -> Report:
    """Send, kill, promote and compare; AssertionError where anything is lost or goes wrong.

    PostgreSQL is a cluster of its own, which ``app`` does not use; Redis is that of ``environment``.
    Requests may be refused for ``allowed`` seconds after a promotion. Events whose job was lost
    wait for the sweeper, or with ``sweeping`` false for a job that is pushed at once.
    """
    report, started = Report(), time.monotonic()
    with cluster() as nodes, receiver() as endpoint:
        _prove(nodes, environment, endpoint, report, kills, sweeping)
    report.seconds = time.monotonic() - started
    assert report.longest_refusing < allowed, report
    return report


def _prove(
    nodes: Cluster,
    environment: Mapping[str, str],
    endpoint: Receiver,
    report: Report,
    kills: int,
    sweeping: bool,
) -> None:
    folder = nodes.primary.instance.folder.parent
    environment = {
        **environment,
        **SETTINGS,
        "DATABASE_URL": nodes.url(),
        "MIGRATION_DATABASE_URL": nodes.url(OWNER_ROLE),
        "PROMETHEUS_MULTIPROC_DIR": str(folder / "metrics"),
        "LOG_LEVEL": "ERROR",
    }
    app = create_app({**environment, "LOG_LEVEL": "WARNING"})  # the level of this process
    with factories.bound(app):
        _fail_repeatedly(app, nodes, environment, endpoint, report, kills, sweeping)
    with app.app_context():
        db.engine.dispose()


def _fail_repeatedly(
    app: Flask,
    nodes: Cluster,
    environment: Mapping[str, str],
    endpoint: Receiver,
    report: Report,
    kills: int,
    sweeping: bool,
) -> None:
    people = {
        user.id: token
        for user, _, token in (
            factories.create_member(factories.create_tenant()) for _ in range(PEOPLE)
        )
    }
    with platform_transaction():
        webhook_endpoints.create(url=endpoint.url, types=["user.updated"], actor=SYSTEM_CLI)
    nodes.replicate_synchronously()
    with _service(environment, nodes.primary.instance.folder.parent) as port:
        load = Load(f"http://{HOST}:{port}")
        with load.run(people):
            for _ in range(kills):
                _fail_over(nodes, load, report)
                report.refused = len(load.refusals)
        assert len(load.refusals) == report.refused, "refused while there was a primary"
        with app.app_context():
            db.engine.dispose()  # its connections were to an earlier primary
            if not sweeping:
                process_events.push()
        wait_for_effects(load, endpoint)
    report.changes, report.receipts = len(load.changes), len(load.receipts)
    report.delivered = len(endpoint.received)
    check_effects(load, endpoint)


def _fail_over(nodes: Cluster, load: Load, report: Report) -> None:
    """Kill the primary under load, promote a standby, and let the killed one rejoin."""
    before, refused = len(load.successes), len(load.refusals)
    time.sleep(BETWEEN)
    load.wait_for(before + 20)
    assert len(load.refusals) == refused, "refused while there was a primary"
    killed, old = time.monotonic(), nodes.primary
    old.kill()
    report.kills += 1
    time.sleep(NOTICED)
    nodes.promote(nodes.furthest())
    promoted = time.monotonic()
    load.wait_for(len(load.successes) + 1)
    served = time.monotonic()
    report.rejoined[nodes.rejoin(old)] += 1
    nodes.wait_for_standbys("quorum")
    time.sleep(max(0.0, promoted + ALLOWED - time.monotonic()))
    last = max(load.refusals[refused:], default=promoted)
    report.longest_refusing = max(report.longest_refusing, last - promoted)
    report.longest_without = max(report.longest_without, served - killed)


@contextmanager
def _service(environment: Mapping[str, str], folder: Path) -> Iterator[int]:
    """Two web processes, a worker, a scheduler, a sequencer and a sender; the port of the first.

    None of them has ended afterwards.
    """
    port, python = free_port(), [sys.executable, "-m"]
    web = [*python, "gunicorn", "wsgi:app", f"--bind={HOST}:{port}"]
    scheduler = [*python, "flask", "--app", "wsgi", "jobs", "scheduler"]
    with ExitStack() as hooks:
        for name, command in (("web", web), ("scheduler", scheduler)):
            process = running(command, environ=environment, log=folder / f"{name}.log")
            hooks.enter_context(process)
        others = [
            _worker.start(environment, list(Queue)),
            _worker.start_sequencer(environment),
            _worker.start_sender(environment, lease=LEASE),
        ]
        for other in others:
            hooks.callback(_worker.kill, other)
        wait_until(lambda: answers(port, "/readyz") == 200)
        yield port
        assert all(other.is_alive() for other in others)

"""Workers are killed at random moments while they rewind a tenant; each change is made once.

An import has changed half of the tenant's users and added as many. A kill hits a worker and, by
chance, the process of its job.
"""

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO

import psutil
from flask import Flask

from app.core.actors import SYSTEM_CLI
from app.core.jobs.queues import Queue
from app.events.positions import sequence
from app.imports import service as imports
from app.imports.jobs import apply_import
from app.rewinds import service
from app.rewinds.jobs import rewind
from app.rewinds.kinds import KINDS
from app.rewinds.models import Rewind
from tests.database import platform_transaction, query, row
from tests.faults import _worker
from tests.imports.files import as_file, tenant_line, user_line

WORKERS = 2
PATIENCE = 900  # seconds that the rewind may take


@dataclass
class Report:
    """What happened."""

    kills: int = 0
    changes: int = 0
    seconds: float = 0.0


def prove(
    app: Flask, environment: Mapping[str, str], *, kills: int = 30, users: int = 20_000
) -> Report:
    """Kill ``kills`` times, finish, and count; AssertionError where anything is wrong."""
    report, half = Report(), users // 2
    old, new = ([f"{name}_{number:06}" for number in range(half)] for name in ("old", "new"))
    _import(app, tenant_line(), *(user_line(name, first_name="First") for name in old))
    to = query("SELECT last_position FROM event_feed")[0].last_position
    _import(app, *(user_line(name, first_name="Changed") for name in (*old, *new)))
    started = time.monotonic()
    with platform_transaction():
        (tenant,) = query("SELECT id FROM tenants")
        wanted = {"to": str(to), "kinds": [*KINDS], "only": None}
        rewind_id = str(service.create(tenant.id, wanted, actor=SYSTEM_CLI).id)
    _sequence(app)
    _kill_while_rewinding(app, environment, rewind_id, kills, report)
    report.seconds = time.monotonic() - started
    _count(half, report)
    return report


def _import(app: Flask, *lines: object) -> None:
    with platform_transaction():
        made = imports.create_import(BytesIO(as_file(*lines)), is_queued=False, actor=SYSTEM_CLI)
    while query("SELECT FROM imports WHERE finished_at IS NULL"):
        with app.app_context():
            apply_import(str(made.id))
    _sequence(app)


def _sequence(app: Flask) -> None:
    with app.app_context():
        while sequence():
            pass


def _kill_while_rewinding(
    app: Flask, environment: Mapping[str, str], rewind_id: str, kills: int, report: Report
) -> None:
    deadline = time.monotonic() + PATIENCE
    workers: list[psutil.Process] = []
    try:
        while query("SELECT FROM rewinds WHERE finished_at IS NULL"):
            assert time.monotonic() < deadline, row(Rewind)
            while len(workers) < WORKERS:
                workers.append(psutil.Process(_worker.start(environment, [Queue.IMPORTS]).pid))
            time.sleep(random.uniform(0.2, 1))
            if report.kills < kills:
                _worker.kill_at_random(workers.pop(0))
                report.kills += 1
            with app.app_context():  # as the periodic job does after 30 seconds
                rewind.push(rewind_id)
    finally:
        for worker in workers:
            _worker.kill_at_random(worker, job=1)


def _count(half: int, report: Report) -> None:
    done = row(Rewind)
    ((restored, inactive),) = query(
        "SELECT count(*) FILTER (WHERE first_name = 'First' AND is_active),"
        " count(*) FILTER (WHERE first_name = 'Changed' AND NOT is_active) FROM users"
    )
    audited = query(
        "SELECT count(*), count(DISTINCT target_id) FROM audit_events"
        " WHERE action = 'user.updated' AND request_id LIKE 'rewind:%'"
    )
    assert (done.state, done.error, done.left_out) == ("completed", "", [])
    assert done.counts == {"users": {"updated": half, "removed": half}}
    assert (restored, inactive) == (half, half)
    assert [tuple(each) for each in audited] == [(2 * half, 2 * half)]
    report.changes = done.done

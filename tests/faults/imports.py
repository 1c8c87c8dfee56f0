"""Workers are killed at random moments while they apply imports; each line is applied once.

Two imports have the same lines: users with memberships, then changes of these users, and lines that
are faulty. A kill hits a worker and, by chance, the process of its job.
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
from app.imports import service
from app.imports.jobs import apply_import
from app.imports.models import Import, ImportPiece
from tests.database import platform_transaction, query, rows
from tests.faults import _worker
from tests.imports.files import as_file, member_line, tenant_line, user_line

WORKERS = 2
PATIENCE = 300  # seconds that all imports may take


@dataclass
class Report:
    """What happened."""

    kills: int = 0
    users: int = 0
    faults: int = 0
    seconds: float = 0.0


def prove(
    app: Flask, environment: Mapping[str, str], *, kills: int = 30, users: int = 20_000
) -> Report:
    """Kill ``kills`` times, finish, and count; AssertionError where anything is wrong."""
    report, started = Report(), time.monotonic()
    content, faulty = _file(users)
    ids = []
    for _ in range(2):
        with platform_transaction():
            made = service.create_import(BytesIO(content), is_queued=True, actor=SYSTEM_CLI)
            ids.append(str(made.id))
    _kill_while_applying(app, environment, ids, kills, report)
    _count(users, faulty, report)
    report.seconds = time.monotonic() - started
    return report


def _file(users: int) -> tuple[bytes, int]:
    """The lines, and how many are faulty."""
    names = [f"user_{number:06}" for number in range(users)]
    lines = [tenant_line()]
    for number, name in enumerate(names):
        lines += [user_line(name), member_line(name, "owner" if number == 0 else "member")]
        if number % 100 == 0:
            lines.append(user_line(name, "unknown"))
    lines += [user_line(name, first_name="Changed") for name in names]
    return as_file(*lines), len(range(0, users, 100))


def _kill_while_applying(
    app: Flask, environment: Mapping[str, str], ids: list[str], kills: int, report: Report
) -> None:
    deadline = time.monotonic() + PATIENCE
    workers: list[psutil.Process] = []
    try:
        while _unfinished():
            assert time.monotonic() < deadline, f"{_unfinished()} imports are left"
            while len(workers) < WORKERS:
                workers.append(psutil.Process(_worker.start(environment, [Queue.IMPORTS]).pid))
            time.sleep(random.uniform(0.2, 1))
            if report.kills < kills:
                _worker.kill_at_random(workers.pop(0))
                report.kills += 1
                with app.app_context():  # as the periodic job does after 30 seconds
                    for import_id in ids:
                        apply_import.push(import_id)
    finally:
        for worker in workers:
            _worker.kill_at_random(worker, job=1)


def _unfinished() -> int:
    counted = "SELECT count(*) AS number FROM imports WHERE finished_at IS NULL"
    return int(query(counted)[0].number)


def _count(users: int, faulty: int, report: Report) -> None:
    imports = rows(Import)
    totals = {
        outcome: sum(one.counts["user"][outcome] for one in imports)
        for outcome in ("created", "updated", "failed")
    }
    ((stored, changed, members),) = query(
        "SELECT count(*), count(*) FILTER (WHERE first_name = 'Changed'),"
        " (SELECT count(*) FROM memberships) FROM users"
    )
    audited = dict(query("SELECT action, count(*) FROM audit_events GROUP BY action"))
    assert [one.state for one in imports] == ["completed", "completed"]
    assert [one.lines_done for one in imports] == [one.lines_total for one in imports]
    assert [one.lines_failed for one in imports] == [faulty, faulty]
    assert rows(ImportPiece) == []
    assert (stored, changed, members) == (users, users, users)
    assert totals["created"] == audited["user.created"] == users
    assert totals["updated"] == audited["user.updated"]
    assert audited["membership.created"] == users
    assert (audited["tenant.created"], audited["import.completed"]) == (1, 2)
    report.users, report.faults = stored, totals["failed"]

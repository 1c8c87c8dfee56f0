"""The index worker is killed at random moments while users are patched; the index stays right.

Fields are archived and restored meanwhile, so that there is always an index to build or to delete.
A kill hits the worker, the job's process, or both.
"""

import random
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import psutil
from flask import Flask

from app.core.actors import SYSTEM_CLI
from app.custom_fields import service
from app.custom_fields.jobs import sync_search_index
from app.custom_fields.models import CustomField, IndexState
from app.custom_fields.search_index.index_state import get_index
from tests import database, factories
from tests.custom_fields.fields import create_field, create_users, wrong_rows
from tests.faults import _worker
from tests.running.serving import wait_until

OPTIONS = ["red", "green", "blue", "grey"]
FIELDS = {
    "note": {"field_type": "text"},
    "amount": {"field_type": "decimal"},
    "colors": {"field_type": "multi_select", "options": OPTIONS},
}
PATIENCE = 120  # seconds to wait for any one thing


@dataclass
class Report:
    """What happened."""

    kills: dict[str, int] = field(default_factory=lambda: {"worker": 0, "job": 0, "both": 0})
    patches: int = 0
    toggles: int = 0
    rows: int = 0
    wrong: int = 0
    refused: list[Any] = field(default_factory=list)
    seconds: float = 0.0


def prove(
    app: Flask, environment: Mapping[str, str], *, kills: int = 20, users: int = 20_000
) -> Report:
    """Kill ``kills`` times, finish the work, and compare; AssertionError where a row is wrong."""
    report, started = Report(), time.monotonic()
    tenant = factories.create_tenant()
    ids = [str(user_id) for user_id in create_users(tenant, users)]
    fields = [
        create_field(tenant, field_key=key, is_searchable=True, **values)
        for key, values in FIELDS.items()
    ]
    with _writers(app, ids, report), _Worker(environment) as worker:
        for _ in range(kills):
            worker.ensure()
            _keep_busy(fields, report)
            _wait_for_progress(fields)
            time.sleep(random.uniform(0, 0.4))
            worker.kill(report)
        _finish(fields, worker)
    _compare(fields, report)
    report.seconds = time.monotonic() - started
    assert report.refused == []
    assert report.wrong == 0, report
    return report


@contextmanager
def _writers(app: Flask, ids: list[str], report: Report, number: int = 4) -> Iterator[None]:
    """Patch random users from several threads for as long as the block lasts."""
    stop, patched = threading.Event(), count()
    token = factories.platform_token()

    def write(seed: int) -> None:
        dice, client = random.Random(seed), app.test_client()
        while not stop.is_set():
            answer = client.patch(
                f"/v1/users/{dice.choice(ids)}/meta_data",
                json={"patches": _random_patch(dice)},
                headers={"Authorization": f"Bearer {token}"},
            )
            if answer.status_code != 200:
                report.refused.append((answer.status_code, answer.get_data(as_text=True)))
            next(patched)
            time.sleep(0.01)

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(number)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        report.patches = next(patched)


def _random_patch(dice: random.Random) -> dict[str, Any]:
    values: dict[str, Any] = {
        "note": dice.choice([None, "a", "x" * 300, f"n{dice.random()}"]),
        "amount": dice.choice([None, 5, 0.1, "0.10000000000000000001", dice.randrange(10**6)]),
        "colors": dice.choice([None, dice.sample(OPTIONS, dice.randrange(5))]),
    }
    return {key: values[key] for key in dice.sample(list(values), dice.randrange(1, 4))}


class _Worker:
    """The worker of the index queue, restarted after each kill."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._process: psutil.Process | None = None
        self._orphans: list[psutil.Process] = []

    def __enter__(self) -> "_Worker":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.is_running():
            self._orphans += [*self._process.children(recursive=True), self._process]
        for process in self._orphans:
            _kill(process)

    def ensure(self) -> None:
        """Start one unless it runs."""
        if self._process is None:
            self._process = psutil.Process(_worker.start(self._environment).pid)

    def kill(self, report: Report) -> None:
        """SIGKILL to the worker, its job's process, or both."""
        assert self._process is not None
        self._process.suspend()  # or it could have another child by now
        children = sorted(self._process.children(), key=lambda child: child.create_time())
        whom = random.choice(["worker", "job", "both"])
        if whom in ("job", "both") and children:
            _kill(children[-1])
        if whom in ("worker", "both"):
            self._orphans += children
            _kill(self._process)
            self._process = None
        else:
            self._process.resume()
        report.kills[whom] += 1


def _kill(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        process.kill()


def _keep_busy(fields: list[CustomField], report: Report) -> None:
    """Archive or restore now and then; queue unfinished work, as the periodic job does."""
    for known in fields:
        with factories.platform_transaction():
            current = service.get_field(known.id)
            is_settled = get_index(current.id).is_settled
            if is_settled or random.random() < 0.3:
                toggle = service.archive if current.is_active else service.restore
                toggle(known.id, actor=SYSTEM_CLI)
                report.toggles += 1
            else:
                sync_search_index.push(str(known.tenant_id), str(known.id))


def _wait_for_progress(fields: list[CustomField]) -> None:
    before = _progress(fields)
    wait_until(lambda: _progress(fields) != before, PATIENCE)


def _progress(fields: list[CustomField]) -> list[tuple[Any, ...]]:
    with factories.platform_transaction():
        states = [get_index(known.id) for known in fields]
        return [(one.state, one.is_settled, one.done) for one in states]


def _finish(fields: list[CustomField], worker: _Worker) -> None:
    """Restore every field, and wait until a worker has finished all work."""
    worker.ensure()
    for known in fields:
        with factories.platform_transaction():
            service.restore(known.id, actor=SYSTEM_CLI)
            sync_search_index.push(str(known.tenant_id), str(known.id))
    wanted = IndexState.READY
    wait_until(
        lambda: all(state == wanted and settled for state, settled, _ in _progress(fields)),
        PATIENCE,
    )


def _compare(fields: list[CustomField], report: Report) -> None:
    for known in fields:
        report.wrong += len(wrong_rows(known))
        counted = "SELECT count(*) AS number FROM custom_field_index_rows WHERE field_id = :id"
        report.rows += database.query(counted, id=known.id)[0].number

"""Processes with wrong clocks take units of a limit from leases, while they are killed, or paused for
longer than their leases, and the service is killed: the limit holds at every moment, and what was
allowed and reported is counted exactly.

Two tenants have the limit. The processes of one are paused, those of the other are killed. A killed
process loses what it has not reported.
"""

import random
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from flask import Flask

from tests import factories
from tests.clients.assembled import assemble
from tests.database import query
from tests.faults._service import Service
from tests.ports import free_port
from tests.running.serving import HOST, PROJECT, wait_until

LEASE = 5  # seconds
PAUSE = 1.4 * LEASE
PLACES = 10_000  # for the counts of processes
EVERY = 0.5  # seconds
PATIENCE = 600  # seconds
AFTER = 5  # seconds after 90 % are used
LIFE = 6  # seconds until a process is paused or killed, in the mean
DAY = 86_400  # seconds; clocks are wrong by up to one
UNITS = 400  # of the limit, for each process
STATE = """
    SELECT c.used, c.held, coalesce(sum(h.amount) FILTER (
            WHERE h.state = 'open' AND h.expires_at > now()), 0) AS lent,
        coalesce(sum(h.over_by), 0) AS over_by
    FROM usage_counters c LEFT JOIN usage_holds h USING (tenant_id, feature, period_start)
    WHERE c.tenant_id = :tenant_id GROUP BY c.used, c.held
"""


@dataclass
class Report:
    """What happened."""

    limit: int
    kills: int = 0
    pauses: int = 0
    restarts: int = 0
    looks: int = 0
    allowed: int = 0  # by processes that were not killed
    late: int = 0  # of these: reported by a paused process when its units were used by others
    counted: int = 0  # of processes that were killed, or shared a limit with them
    lost: int = 0

    def __str__(self) -> str:
        return (
            f"{self.pauses} pauses, {self.kills} kills, {self.restarts} restarts of the service:"
            f" {self.looks} looks found at most {self.limit} used and lent; {self.allowed} units were"
            f" allowed, and all are counted or, {self.late}, an overrun; beside killed processes"
            f" {self.counted} are counted, and {self.lost} were not reported"
        )


@dataclass
class Group:
    """The processes of one tenant."""

    url: str
    folder: Path
    limit: int
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)
    started: int = 0

    def __post_init__(self) -> None:
        self.tenant = factories.create_tenant()
        self.key = factories.create_api_key(self.tenant, ["usage:write"])
        self.counts = self.folder / f"{self.tenant.id}.counts"
        self.counts.write_bytes(bytes(8 * PLACES))

    def start(self) -> None:
        offset = random.randint(-DAY, DAY)
        script = str(PROJECT / "tests" / "faults" / "_lease_holder.py")
        command = [sys.executable, script, self.url, self.key, str(self.counts)]
        command += [str(self.started), str(offset)]
        self.started += 1
        self.running.append(subprocess.Popen(command, env={"PYTHONPATH": str(self.folder)}))

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """SIGKILL to a process, for which another starts."""
        assert process.poll() is None
        process.kill()
        process.wait()
        self.running.remove(process)
        self.start()

    def end(self) -> None:
        """Let all return what they have borrowed."""
        for process in self.running:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.running:
            assert process.wait(60) in (0, -signal.SIGTERM)  # the latter before it has begun

    def kill_all(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()

    def allowed(self) -> int:
        return sum(number for (number,) in struct.iter_unpack("q", self.counts.read_bytes()))

    def state(self) -> Any:
        """The counter, after a check that no more than the limit is used and lent."""
        (found,) = query(STATE, tenant_id=self.tenant.id) or [None]
        assert found is None or found.used + found.lent <= self.limit, found
        return found


def prove(
    app: Flask,
    environment: Mapping[str, str],
    *,
    processes: int = 50,
    seconds: float = 60,
    units: int = UNITS,
    after: float = AFTER,
) -> Report:
    """Start, disturb and count; AssertionError where a unit is wrong."""
    size, port = processes // 2, free_port()
    limit = size * units
    factories.create_limits("free", factories.limit_flag("calls", limit))
    report, ended = Report(limit), threading.Event()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        assemble(folder)
        groups = [Group(f"http://{HOST}:{port}", folder, limit) for _ in range(2)]
        service = stack.enter_context(Service(environment, folder, port))
        for group in groups:
            stack.callback(group.kill_all)
            for _ in range(size):
                group.start()
        watching = stack.enter_context(ThreadPoolExecutor()).submit(_watch, groups, ended)
        stack.callback(ended.set)
        wait_until(lambda: all(group.state() for group in groups))
        _disturb(report, *groups, service, seconds, after)
        for group in groups:
            group.end()
        wait_until(lambda: all(group.state().lent == 0 for group in groups), 2 * LEASE)
        ended.set()
        report.looks = watching.result()
        _compare(report, *groups)
    return report


def _watch(groups: Sequence[Group], ended: threading.Event) -> int:
    """Look until the end; how often."""
    for number in count():
        if ended.wait(0.02):
            return number
        for group in groups:
            group.state()
    raise AssertionError


def _disturb(
    report: Report, paused: Group, killed: Group, service: Service, seconds: float, after: float
) -> None:
    """Pause and kill processes, also when nearly all is used, and twice the service."""
    began = time.monotonic()
    resume: deque[tuple[float, subprocess.Popen[bytes]]] = deque()
    restarts = [seconds / 3, seconds * 2 / 3]
    while (passed := time.monotonic() - began) < seconds or resume:
        time.sleep(EVERY)
        if any(group.state().used < 0.9 * group.limit for group in (paused, killed)):
            seconds = max(seconds, passed + after)
            assert seconds < PATIENCE
        while resume and resume[0][0] < passed:
            resume.popleft()[1].send_signal(signal.SIGCONT)
        if passed > seconds:
            continue
        for process in _unlucky(killed.running):
            killed.kill(process)
            report.kills += 1
        stopped = [process for _, process in resume]
        for process in _unlucky(one for one in paused.running if one not in stopped):
            process.send_signal(signal.SIGSTOP)
            resume.append((passed + PAUSE, process))
            report.pauses += 1
        if restarts and passed > restarts[0]:
            restarts.pop(0)
            service.restart()
            report.restarts += 1


def _unlucky(processes: Iterable[subprocess.Popen[bytes]]) -> list[subprocess.Popen[bytes]]:
    return [process for process in processes if random.random() < EVERY / LIFE]


def _compare(report: Report, paused: Group, killed: Group) -> None:
    state = paused.state()
    report.allowed, report.late = paused.allowed(), state.over_by
    assert report.allowed == state.used + state.over_by
    state = killed.state()
    report.counted = state.used + state.over_by
    report.lost = killed.allowed() - report.counted
    assert report.lost >= 0

"""The three servers that are compared, each started as it would be in production."""

from __future__ import annotations

import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import psutil

from benchmarks.stage import PROJECT, Stage

WORKERS = 2
GUNICORN = [sys.executable, "-m", "gunicorn", "--bind", "127.0.0.1:{port}"]
COMMANDS = {
    "service": [*GUNICORN, "wsgi:app"],
    "floor": [
        *GUNICORN,
        *("--config", "benchmarks/floor/gunicorn_settings.py", "benchmarks.floor.main:app"),
    ],
    "peer": [
        *(sys.executable, "-m", "uvicorn", "benchmarks.peer.main:app", "--port", "{port}"),
        *("--workers", str(WORKERS), "--log-level", "warning", "--no-access-log"),
    ],
}


@dataclass(frozen=True)
class Server:
    """A server that answers on ``port`` of this machine."""

    name: str
    port: int
    process: psutil.Process
    seconds_to_first_answer: float

    def cpu_seconds(self) -> float:
        return tree_cpu_seconds(self.process)

    def worker_megabytes(self) -> float:
        """The resident memory of the largest worker."""
        return max(child.memory_info().rss for child in self.process.children(True)) / 1e6


@contextmanager
def serving(stage: Stage, name: str) -> Iterator[Server]:
    """Start one of :data:`COMMANDS` on a free port; it ends with the block."""
    port = _free_port()
    command = [word.format(port=port) for word in COMMANDS[name]]
    started = time.monotonic()
    output = stage.instance.log(f"benchmark-{name}")
    with output.open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=PROJECT,
            env=stage.environment | {"GUNICORN_SETTINGS": json.dumps(_gunicorn_settings())},
            process_group=0,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        if not _answers(process, port):
            raise SystemExit(f"The {name} did not start:\n{output.read_text()[-2000:]}")
        yield Server(name, port, psutil.Process(process.pid), time.monotonic() - started)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def tree_cpu_seconds(process: psutil.Process) -> float:
    """What a process, its children and its ended children have used."""
    total = 0.0
    for one in [process, *process.children(recursive=True)]:
        try:
            total += sum(one.cpu_times()[:2])
        except psutil.NoSuchProcess:
            continue
    return total + sum(process.cpu_times()[2:4])


@cache
def _gunicorn_settings() -> dict[str, Any]:
    """What gunicorn.conf.py sets; its hooks and its logger are the service's own affair."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        found = runpy.run_path(str(PROJECT / "gunicorn.conf.py"))
        del os.environ["PROMETHEUS_MULTIPROC_DIR"]
    plain = (str, int, float, bool)
    return {name: value for name, value in found.items() if type(value) in plain}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as connection:
                connection.settimeout(5)
                connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
                if connection.recv(1):
                    return True
        except OSError:
            time.sleep(0.02)
    return False

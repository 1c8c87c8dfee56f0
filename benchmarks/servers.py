"""The four servers that are compared, each with two web processes."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil

from benchmarks.stage import PROJECT, Stage

WEB_PROCESSES = 2
PEER_POOL_SIZE = 10  # connections of each process of a FastAPI peer; 6 and 16 were slower
START_SECONDS, STOP_SECONDS = 30, 20

GUNICORN = [sys.executable, "-m", "gunicorn", "--bind", "127.0.0.1:{port}"]
UVICORN = [
    *(sys.executable, "-m", "uvicorn", "--port", "{port}", "--workers", str(WEB_PROCESSES)),
    *("--loop", "uvloop", "--http", "httptools", "--log-level", "warning"),
    *("--no-access-log", "--no-server-header", "--no-proxy-headers"),
]
COMMANDS = {
    "service": [*GUNICORN, "wsgi:app"],
    "core": [*UVICORN, "benchmarks.peers.core_app:app"],
    "asyncpg": [*UVICORN, "benchmarks.peers.asyncpg_app:app"],
    "floor": [
        *GUNICORN,
        *("--config", "benchmarks/peers/gunicorn_settings.py", "benchmarks.peers.floor:app"),
    ],
}


@dataclass(frozen=True)
class Server:
    """A server that answers on ``port`` of this machine."""

    name: str
    port: int
    process: psutil.Process

    def cpu_seconds(self) -> float:
        return tree_cpu_seconds(self.process)

    def process_megabytes(self) -> float:
        """The resident memory of the largest web process, in MB."""
        return max(child.memory_info().rss for child in self.process.children(True)) / 1e6


@contextmanager
def serving(stage: Stage, name: str) -> Iterator[Server]:
    """Start one of :data:`COMMANDS` on a free port; it ends with the block."""
    port = free_port()
    log = stage.folder / f"{name}.log"
    environment = {
        **stage.environment,
        "WEB_PROCESSES": str(WEB_PROCESSES),
        "PEER_POOL_SIZE": str(PEER_POOL_SIZE),
        "GUNICORN_SETTINGS": json.dumps(_gunicorn_settings()),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [word.format(port=port) for word in COMMANDS[name]],
            cwd=PROJECT,
            env=environment,
            process_group=0,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        if not answers(process, port):
            raise SystemExit(f"{name} did not start:\n{log.read_text()[-2000:]}")
        yield Server(name, port, psutil.Process(process.pid))
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            for child in psutil.Process(process.pid).children(recursive=True):
                child.kill()
            process.kill()
            process.wait()


def tree_cpu_seconds(process: psutil.Process) -> float:
    """The processor time of a process, its children and its ended children, in seconds."""
    total = 0.0
    for one in [process, *process.children(recursive=True)]:
        try:
            total += sum(one.cpu_times()[:2])
        except psutil.NoSuchProcess:
            continue
    return total + sum(process.cpu_times()[2:4])


def _gunicorn_settings() -> dict[str, Any]:
    """The plain settings of gunicorn.conf.py: server, threads, time-outs, but no hooks."""
    program = (
        "import json, runpy;"
        "found = runpy.run_path('gunicorn.conf.py');"
        "plain = {k: v for k, v in found.items() if type(v) in (str, int, float, bool)};"
        "print(json.dumps({k: v for k, v in plain.items() if not k.startswith('__')}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    settings: dict[str, Any] = json.loads(done.stdout)
    return settings


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def answers(process: subprocess.Popen[bytes], port: int) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as connection:
                connection.settimeout(5)
                connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                if connection.recv(1):
                    return True
        except OSError:
            time.sleep(0.02)
    return False

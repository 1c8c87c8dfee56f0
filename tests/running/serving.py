"""The service's own processes, and others in front of it or behind it, each on a free port."""

import http.client
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ports import free_port

PROJECT = Path(__file__).parents[2]
HOST = "127.0.0.1"
READY_SECONDS = 60


def program(name: str, *packages: str) -> str:
    """The path of a program that pip cannot install; the test is skipped where it is not there."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        pytest.skip(
            f"{name} is not installed (on Debian: apt install {' '.join(packages) or name})"
        )
    return found


@contextmanager
def running(
    command: Sequence[str],
    *,
    environ: Mapping[str, str] | None = None,
    log: Path,
    inherited: Sequence[int] = (),
) -> Iterator[subprocess.Popen[bytes]]:
    """A process in the project's folder; ended with SIGTERM, and what it said is in ``log``.

    It keeps the ``inherited`` file descriptors.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=PROJECT,
            env={**os.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=inherited,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(45)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def web_server(
    environment: Mapping[str, str],
    folder: Path,
    *options: str,
    workers: int = 2,
    listener: socket.socket | None = None,
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """``gunicorn wsgi:app`` with further ``options``, ready, and its port.

    It serves the connections of ``listener`` where there is one, as with a systemd socket.
    """
    if listener is None:
        port, inherited = free_port(), []
        bind = f"{HOST}:{port}"
    else:
        port, inherited = listener.getsockname()[1], [listener.fileno()]
        bind = f"fd://{listener.fileno()}"
    command = [sys.executable, "-m", "gunicorn", "wsgi:app", f"--bind={bind}", *options]
    environ = {**environment, "WEB_PROCESSES": str(workers), "PORT": str(port)}
    log = folder / f"web-{port}.log"
    with running(command, environ=environ, log=log, inherited=inherited) as process:
        wait_until(lambda: answers(port, "/readyz") == 200 or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield port, process


def wait_until(holds: Callable[[], object], seconds: float = READY_SECONDS) -> None:
    """Return once ``holds`` does; fails after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "not ready in time"
        time.sleep(0.05)


def answers(port: int, path: str, headers: Mapping[str, str] | None = None) -> int | None:
    """The status of a GET; None where nothing answers."""
    connection = http.client.HTTPConnection(HOST, port, timeout=10)
    try:
        connection.request("GET", path, headers=dict(headers or {}))
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()

"""`flask dev`: the web server, a worker and the scheduler, until Ctrl-C or SIGTERM."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from flask import Flask

from app.dev.defaults import development_environment
from app.dev.engines import PROJECT, Claim
from app.dev.faults import DevError
from app.dev.processes import Processes

HOST = "127.0.0.1"
PORT_SECONDS = 5  # what the server of a killed predecessor gets to let go of the port
START_SECONDS = 60


def serve(app: Flask, *, port: int, started: Callable[[str], None]) -> None:
    """Run the service on ``port``; call ``started`` with its URL once it is ready.

    It runs until a signal raises here; then, or if a part of it ends by itself (DevError),
    everything has ended when this returns.
    """
    claim: Claim | None = app.extensions.get("engines")
    python = [sys.executable, "-m"]
    flask = [*python, "flask", "--app", "wsgi", "jobs"]
    with Processes(service_environment(app), folder=PROJECT) as processes:
        processes.start("web server", [*python, "gunicorn", "wsgi:app", f"--bind={HOST}:{port}"])
        processes.start("worker", [*flask, "worker"])
        processes.start("scheduler", [*flask, "scheduler"])
        processes.watch(until=lambda: is_ready(port), seconds=START_SECONDS)
        started(f"http://{HOST}:{port}")
        processes.watch(until=lambda: claim is not None and claim.is_lost())
    raise DevError("PostgreSQL or Redis ended unexpectedly; see the logs in the instance folder.")


def service_environment(app: Flask) -> dict[str, str]:
    """The environment of the processes: with the addresses and secrets of a private instance."""
    environ = {"WEB_CONCURRENCY": "2", **os.environ}
    if "engines" not in app.extensions:
        return environ
    environ = development_environment(environ)
    return {"PROMETHEUS_MULTIPROC_DIR": f"{environ['INSTANCE_DIR']}/metrics", **environ}


def is_ready(port: int) -> bool:
    """Whether the service on ``port`` can serve requests."""
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def check_port(port: int) -> None:
    """Return if a server may listen on ``port``.

    Raises :class:`DevError` if another program does.
    """
    deadline = time.monotonic() + PORT_SECONDS
    while True:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
                return
            except OSError as fault:
                if time.monotonic() > deadline:
                    raise DevError(
                        f"Port {port} cannot be used ({fault.strerror}). Choose another one:"
                        f" flask dev --port {port + 1}"
                    ) from None
        time.sleep(0.2)


@contextmanager
def stopped_by_signal() -> Iterator[None]:
    """Leave the block quietly on Ctrl-C or SIGTERM; further ones do not disturb its clean-up."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        return

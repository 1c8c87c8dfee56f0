"""`flask dev`'s processes: those of the Procfile, run by honcho."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import IO

import psutil
from flask import Flask

from app.dev.engines.instance import DevError, Instance
from app.dev.engines.server import START_SECONDS, wait_until
from app.dev.environment import development_environment

HOST = "127.0.0.1"
DEFAULT_PORT = 8000
PORT_SECONDS = 8  # for the web server of a killed `flask dev` to end
PROJECT = Path(__file__).parents[2]


def last_port(instance: Instance) -> int:
    """The port of the last ``flask dev`` of this instance; 8000 if there was none."""
    with suppress(OSError, ValueError):
        return int(instance.port_file.read_text())
    return DEFAULT_PORT


def address(port: int) -> str:
    return f"http://{HOST}:{port}"


def serve(
    app: Flask,
    *,
    port: int,
    prepare: Callable[[], None],
    ready: Callable[[], None],
    quiet: bool = False,
) -> None:
    """Run the service on ``port`` until a signal raises here.

    ``prepare`` is called while the web process starts, ``ready`` once the service answers. The
    other processes start then, so that they do not slow down the web process.

    All processes have ended when this returns. Raises :class:`DevError` if one of them, or a
    private server, ends by itself. ``quiet`` writes what they print to a file of the instance.
    """
    environ, servers = {"LOG_LEVEL": "WARNING", **os.environ}, app.extensions.get("engines", ())
    if servers:
        environ = development_environment(environ)
        environ.setdefault("PROMETHEUS_MULTIPROC_DIR", f"{environ['INSTANCE_DIR']}/metrics")
    instance = Instance.at(app.extensions["config"].instance_dir)
    log = instance.log("service") if quiet else None
    with suppress(OSError):
        instance.port_file.write_text(str(port))
    with running(environ, port=port, log=log) as (honcho, start_others):

        def has_ended() -> bool:
            stopped = None in [one.process() for one in servers]
            return stopped or honcho.poll() is not None or _has_dead_process(honcho.pid)

        prepare()
        wait_until(lambda: has_ended() or is_ready(port), seconds=START_SECONDS, every=0.1)
        if not has_ended() and is_ready(port):
            start_others()
            ready()
            wait_until(has_ended, seconds=float("inf"), every=0.5)
        ended = [one.title for one in servers if one.process() is None] or ["A process"]
        raise DevError(
            f"{ended[0]} did not start or has ended, so everything was stopped; see {log or 'above'},"
            f" and the logs in {instance.folder / 'logs'}. The data are kept: run flask dev again."
        )


@contextmanager
def running(
    environ: Mapping[str, str], *, port: int, log: Path | None = None
) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], None]]]:
    """The Procfile's processes, until the block ends: honcho, which runs them, and a function.

    At first only the web process starts; the function starts the others. They print to standard
    error, or into the file ``log``.

    honcho ends all processes when one of them ends. One is ``cat``: it ends when standard input
    is closed, which is when the block ends or when this process does, even by SIGKILL.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="controlplane-dev-"))
        procfile, barrier = Path(folder, "Procfile"), Path(folder, "barrier")
        barrier.touch()
        with socket.create_server((HOST, 0)) as free:
            stream_port = free.getsockname()[1]
        procfile.write_text(_commands(barrier, stream_port))
        command = [sys.executable, "-m", "honcho", "--env", os.devnull]
        command += ["--procfile", str(procfile), "start"]
        command += ["web", "worker", "background", "stream", "parent"]
        output: IO[bytes] | IO[str] = sys.stderr  # standard output is for the command's own result
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
            output = stack.enter_context(log.open("wb"))
        with subprocess.Popen(  # noqa: S603 - our own command
            command,
            cwd=PROJECT,
            env={
                "STREAM_URL": address(stream_port),
                **environ,
                "PATH": f"{Path(sys.executable).parent}:{environ.get('PATH', os.defpath)}",
                "GUNICORN_CMD_ARGS": f"--bind={HOST}:{port}",
                "FLASK_RUN_FROM_CLI": "false",  # the server loads no commands
            },
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C does not reach it
        ) as process:
            yield process, barrier.unlink


def _has_dead_process(honcho: int) -> bool:
    """Whether one of honcho's processes is dead.

    honcho itself does not notice it while a child of that process lives, such as that of a worker.
    """
    with suppress(psutil.NoSuchProcess):
        parents = {honcho, *(one.pid for one in psutil.Process(honcho).children())}
        below = psutil.Process(honcho).children(recursive=True)
        return any(one.ppid() in parents and one.status() == psutil.STATUS_ZOMBIE for one in below)
    return False


def _commands(barrier: Path, stream_port: int) -> str:
    """The Procfile's lines, and that of ``cat``; all but the web process wait for the ``barrier``."""
    wait = f"while [ -e {shlex.quote(str(barrier))} ]; do sleep 0.1; done; exec "
    lines = (PROJECT / "Procfile").read_text()
    lines = re.sub(r"^stream: .*", rf"\g<0> --bind={HOST}:{stream_port}", lines, flags=re.MULTILINE)
    return re.sub(r"^(?!web:)(\w+): ", rf"\1: {wait}", lines, flags=re.MULTILINE) + "parent: cat\n"


def is_ready(port: int) -> bool:
    """True if the service on ``port`` can serve requests."""
    with closing(HTTPConnection(HOST, port, timeout=5)) as connection:
        with suppress(OSError, HTTPException):
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        return False


def check_port(port: int) -> None:
    """Raise :class:`DevError` if another program listens on ``port``."""

    def is_free() -> bool:
        with suppress(OSError):
            socket.create_server((HOST, port)).close()
            return True
        return False

    wait_until(is_free, seconds=PORT_SECONDS, every=0.2)
    if not is_free():
        raise DevError(
            f"Port {port} cannot be used. Choose another one: flask dev --port {port + 1}"
        )

"""Use an instance's private engines: join those that run, or have them started.

They run for as long as anybody uses them. See :mod:`app.dev.keeper`.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flask import Flask, appcontext_pushed

from app.dev.faults import DevError
from app.dev.folders import locked, prepare_folders
from app.dev.instance import Instance
from app.dev.keeper import READY

START_SECONDS = 120
STOP_SECONDS = 60
PROJECT = Path(__file__).parents[2]


class Claim:
    """One user's hold on running engines; the kernel gives it up when the process ends."""

    def __init__(self, connection: socket.socket, keeper: subprocess.Popen[bytes] | None) -> None:
        self._connection = connection
        self._keeper = keeper
        self._holder = os.getpid()

    def is_lost(self) -> bool:
        """True once the engines have ended without being asked."""
        self._connection.setblocking(False)
        try:
            return self._connection.recv(1) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def give_up(self) -> None:
        """Let go; if nobody else uses the engines, return when they have ended.

        Nothing happens in a fork: the claim is the process' that made it.
        """
        if os.getpid() != self._holder:
            return
        self._connection.settimeout(STOP_SECONDS)
        others_stay = False
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)
            others_stay = self._connection.recv(1) != b""
        self._connection.close()
        if self._keeper is not None and not others_stay:
            self._keeper.wait(STOP_SECONDS)


@contextlib.contextmanager
def engines(folder: str | os.PathLike[str], *, durable: bool = True) -> Iterator[Claim]:
    """A running PostgreSQL and Redis for the instance in ``folder``, with its roles and database.

    ``durable=False`` is for tests: quick, and the data does not outlive a power cut.
    Raises :class:`DevError` if they cannot be had.
    """
    instance = Instance.at(folder)
    prepare_folders(instance)
    claim = _claim(instance, durable=durable)
    try:
        yield claim
    finally:
        claim.give_up()


def run_engines_for(app: Flask) -> None:
    """Have the engines of the application's instance run while it is used.

    That is from its first application context until the process ends; a command's ``--help`` needs
    none. ``app.extensions["engines"]`` is the :class:`Claim`.
    """
    lock = threading.Lock()

    def start(_sender: Flask, **_: Any) -> None:
        with lock:
            if "engines" in app.extensions or "--help" in sys.argv:
                return
            claims = contextlib.ExitStack()
            folder = app.extensions["config"].instance_dir
            app.extensions["engines"] = claims.enter_context(engines(folder))
            atexit.register(claims.close)

    appcontext_pushed.connect(start, app, weak=False)


def _claim(instance: Instance, *, durable: bool) -> Claim:
    while True:
        keeper = None
        with locked(instance.folder / "start.lock", seconds=START_SECONDS):
            connection = _connect(instance)
            if connection is None:
                keeper = _start_keeper(instance, durable=durable)
                connection = _connect_to(keeper, instance)
        if _is_ready(connection, instance):
            return Claim(connection, keeper)
        connection.close()
        if keeper is not None:
            raise _fault_of(keeper, instance)


def _connect(instance: Instance) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(START_SECONDS)
    try:
        connection.connect(str(instance.keeper_socket))
    except OSError:  # nobody is there: no keeper runs, or the last one was killed
        connection.close()
        return None
    return connection


def _start_keeper(instance: Instance, *, durable: bool) -> subprocess.Popen[bytes]:
    program = Path(__file__).with_name("keeper_process.py")
    command = [sys.executable, "-P", str(program), str(instance.folder)]
    if not durable:
        command.append("--volatile")
    with instance.log("keeper").open("wb") as log:
        return subprocess.Popen(  # noqa: S603 - our own command
            command,
            cwd=PROJECT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for its users
        )


def _connect_to(keeper: subprocess.Popen[bytes], instance: Instance) -> socket.socket:
    while keeper.poll() is None:
        connection = _connect(instance)
        if connection is not None:
            return connection
        time.sleep(0.02)
    raise _fault_of(keeper, instance)


def _is_ready(connection: socket.socket, instance: Instance) -> bool:
    """False if the keeper ends instead: it was about to, or could not start the engines."""
    try:
        return connection.recv(len(READY)) == READY
    except TimeoutError:
        raise DevError(
            f"The engines did not start within {START_SECONDS} s; see {instance.log_folder}."
        ) from None
    except OSError:
        return False


def _fault_of(keeper: subprocess.Popen[bytes], instance: Instance) -> DevError:
    keeper.wait(STOP_SECONDS)
    words = instance.log("keeper").read_text(errors="replace").splitlines()
    return DevError(
        words[-1] if words else f"The engines did not start; see {instance.log_folder}."
    )

"""Use an instance's servers: the first user starts them, the last user stops them.

Each user holds a shared lock on ``users.lock``; the kernel releases it however the user ends.
Servers of a user that was killed keep running; the next user takes them over.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import IO, NamedTuple

from flask import Flask, appcontext_pushed

from app.dev.engines.account import server_account
from app.dev.engines.instance import Instance
from app.dev.engines.postgres import Postgres, program
from app.dev.engines.redis_server import RedisServer


class Engines(NamedTuple):
    """The two servers of an instance."""

    postgres: Postgres
    redis: RedisServer

    @classmethod
    def of(cls, instance: Instance, *, durable: bool = True) -> Engines:
        """The servers of ``instance``, running or not."""
        account = server_account(instance.postgres_data, program("postgres"))
        postgres = Postgres(instance, account=account, durable=durable)
        return cls(postgres, RedisServer(instance, account=account, durable=durable))

    def start(self) -> None:
        """Both servers answer afterwards; the roles and the database exist."""
        for server in self:
            server.start()
        self.postgres.create_database()

    def stop(self) -> None:
        for server in self:
            server.stop()


@contextlib.contextmanager
def engines(folder: str | os.PathLike[str], *, durable: bool = True) -> Iterator[Engines]:
    """PostgreSQL and Redis of the instance in ``folder`` run while the block does.

    ``durable=False`` is for tests: a power cut loses the data.
    Raises :class:`DevError` if they do not start.
    """
    with contextlib.ExitStack() as stack:
        instance, user = Instance.at(folder), os.getpid()
        try:
            instance.folder.mkdir(parents=True, exist_ok=True)
            servers = Engines.of(instance, durable=durable)
            users = stack.enter_context((instance.folder / "users.lock").open("a"))
            stack.callback(_leave, instance, servers, users, user)
            with _alone(instance):
                fcntl.flock(users, fcntl.LOCK_SH)
                servers.start()
        except OSError as fault:
            raise instance.unusable(fault) from None
        yield servers


def _leave(instance: Instance, servers: Engines, users: IO[str], user: int) -> None:
    """Stop the servers if nobody else uses them. A fork of the ``user`` does not stop them."""
    if os.getpid() == user:
        with _alone(instance), contextlib.suppress(BlockingIOError):
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            servers.stop()


@contextlib.contextmanager
def _alone(instance: Instance) -> Iterator[None]:
    """No other process starts or stops the servers while the block runs."""
    with (instance.folder / "start.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def exit_on(*signals: signal.Signals, code: int) -> None:
    """The first of the ``signals`` raises SystemExit; later signals do not disturb the clean-up."""

    def leave(*_: object) -> None:
        for number in signals:
            signal.signal(number, signal.SIG_IGN)
        raise SystemExit(code)

    for number in signals:
        signal.signal(number, leave)


def run_engines_for(app: Flask) -> None:
    """Run the servers of the application's instance while the application is used.

    That is from its first application context to the end of the process; ``--help`` needs none.
    ``app.extensions["engines"]`` is the :class:`Engines`.
    """

    def start(_sender: Flask, **_: object) -> None:
        if "engines" in app.extensions or "--help" in sys.argv:
            return
        in_main_thread = threading.current_thread() is threading.main_thread()
        if in_main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            exit_on(signal.SIGTERM, code=128 + signal.SIGTERM)
        stack = contextlib.ExitStack()
        atexit.register(stack.close)
        folder = app.extensions["config"].instance_dir
        app.extensions["engines"] = stack.enter_context(engines(folder))

    appcontext_pushed.connect(start, app, weak=False)

"""The process that runs an instance's engines for as long as anybody uses them.

It runs by :mod:`app.dev.keeper_process`. Whoever uses the engines holds a connection to the
keeper's socket (:mod:`app.dev.engines`); when the last one is closed, by whatever end of its
process, the engines are stopped, the keeper ends and nothing is left.
"""

from __future__ import annotations

import argparse
import contextlib
import selectors
import signal
import socket
import sys
import time
from collections.abc import Sequence
from types import FrameType

from app.dev.engine import Engine
from app.dev.faults import DevError
from app.dev.folders import engine_account, locked
from app.dev.instance import Instance
from app.dev.postgres import Postgres
from app.dev.redis import Redis

READY = b"ready\n"
BYE = b"bye\n"
FIRST_USER_SECONDS = 10
PREDECESSOR_SECONDS = 60  # an earlier keeper may still be stopping its engines


def main() -> int:
    """Keep the engines; 1 and a sentence on standard error if that is not possible."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--volatile", action="store_true", help="fast, and unsafe for the data")
    arguments = parser.parse_args()
    instance = Instance.at(arguments.folder)
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, _end)
    try:
        with locked(instance.folder / "keeper.lock", seconds=PREDECESSOR_SECONDS):
            keep(instance, durable=not arguments.volatile)
    except DevError as fault:
        print(fault.message, file=sys.stderr)  # noqa: T201 - read by the process that starts us
        return 1
    return 0


def keep(instance: Instance, *, durable: bool) -> None:
    """Start the engines, wait until nobody uses them any more, and stop them."""
    account = engine_account(instance)
    postgres = Postgres(instance, account=account, durable=durable)
    redis = Redis(instance, account=account, durable=durable)
    engines: list[Engine] = [postgres, redis]
    users: set[socket.socket] = set()
    instance.keeper_socket.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(instance.keeper_socket))
        door.listen(64)
        try:
            for engine in engines:
                engine.start()
            for engine in engines:
                engine.wait_until_ready()
            postgres.create_database()
            _serve(door, users, engines)
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            instance.keeper_socket.unlink(missing_ok=True)
            for engine in engines:
                engine.stop()


def _serve(door: socket.socket, users: set[socket.socket], engines: Sequence[Engine]) -> None:
    """Return when the last of the ``users`` is gone.

    One who leaves others behind is told so; the last one's connection stays open until the engines
    have ended, so that its other end can wait for that.
    """
    give_up = time.monotonic() + FIRST_USER_SECONDS
    with selectors.DefaultSelector() as selector:
        selector.register(door, selectors.EVENT_READ)
        while users or time.monotonic() < give_up:
            for key, _ in selector.select(timeout=0.5):
                if key.fileobj is door:
                    user = _welcome(door)
                    users.add(user)
                    selector.register(user, selectors.EVENT_READ, data=user)
                    continue
                if users == {key.data}:
                    return
                users.remove(key.data)
                selector.unregister(key.data)
                _tell(key.data, BYE)
                key.data.close()
            for engine in engines:
                if engine.has_ended():
                    raise DevError(f"{engine.title} ended unexpectedly: {engine.last_words()}")


def _welcome(door: socket.socket) -> socket.socket:
    user, _ = door.accept()
    _tell(user, READY)
    return user


def _tell(user: socket.socket, word: bytes) -> None:
    with contextlib.suppress(OSError):  # one who is gone already is noticed at the next turn
        user.sendall(word)


def _end(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)

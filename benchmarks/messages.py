"""How many messages a request costs: proxies before PostgreSQL and Redis that count them."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

Counter = Callable[[bytes], int]


class Proxy:
    """Passes the bytes of a UNIX socket on, counting what clients send."""

    def __init__(self, path: Path, target: Path, new_counter: Callable[[], Counter]) -> None:
        self.count = 0
        self._target = target
        self._new_counter = new_counter
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(128)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(self._target))
            counter = self._new_counter()
            threading.Thread(target=self._pass, args=(client, server, counter), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, None), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, counter: Counter | None) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if counter is not None:
                    self.count += counter(data)
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)


def postgres_counter() -> Counter:
    """Counts what makes the server answer: a simple query (Q) or the end of a pipeline (S)."""
    pending = bytearray()
    started = False

    def count(data: bytes) -> int:
        nonlocal started
        pending.extend(data)
        found = 0
        while len(pending) >= 5:
            # The first message of a connection has no type byte, so its length comes first.
            kind, offset = (chr(pending[0]), 1) if started else ("", 0)
            length = int.from_bytes(pending[offset : offset + 4], "big")
            if len(pending) < offset + length:
                break
            del pending[: offset + length]
            started = True
            found += kind in {"Q", "S"}
        return found

    return count


def redis_counter() -> Counter:
    """Counts what the client sends at once: a command, or a pipeline of them."""
    return lambda data: 1


@contextlib.contextmanager
def counting(folder: Path, postgres: Path, redis: Path) -> Iterator[tuple[Proxy, Proxy]]:
    """Proxies in ``folder`` before the sockets of PostgreSQL and Redis."""
    proxies = (
        Proxy(folder / postgres.name, postgres, postgres_counter),
        Proxy(folder / redis.name, redis, redis_counter),
    )
    try:
        yield proxies
    finally:
        for proxy in proxies:
            proxy.close()

"""A web process of the server that runs in a thread of the test, with a small application."""

from __future__ import annotations

import http.client
import io
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from weakref import WeakKeyDictionary

from gunicorn.config import Config

from app.core.http import long_poll
from app.core.http.server import Worker

HOST = "127.0.0.1"
LARGE = 3_000_000
SETTINGS = {"threads": 2, "keepalive": 5, "timeout": 30, "graceful_timeout": 20}


class Program:
    """A WSGI application.

    ``/wait`` answers when it is released, ``/large`` with 3 MB, ``/wait-large`` does both,
    ``/echo`` answers with the body it got.
    """

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.environ: dict = {}
        self.waiting = threading.Semaphore(0)
        self.released = threading.Semaphore(0)

    def __call__(self, environ, start_response):
        path = environ["PATH_INFO"]
        self.paths.append(path)
        self.environ = environ
        body = path.encode()
        if path.startswith("/wait"):
            self.waiting.release()
            self.released.acquire(timeout=60)
        if path == "/exit":
            raise SystemExit
        if path == "/fail":
            raise LookupError
        if path == "/nothing":
            start_response("204 No Content", [])
            return []
        if path.endswith("large"):
            body = b"x" * LARGE
        elif path == "/echo":
            body = environ["wsgi.input"].read()
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]


class WebProcess:
    """What gunicorn would run in a process of its own."""

    def __init__(self, **settings: int) -> None:
        config = Config()
        for name, value in {**SETTINGS, **settings}.items():
            config.set(name, value)
        self.listener = socket.create_server((HOST, 0))
        self.address = self.listener.getsockname()
        self.program = Program()
        listeners = [SimpleNamespace(sock=self.listener.dup())]
        log = logging.Logger("quiet")
        self.worker = Worker(1, os.getppid(), listeners, None, 30, config, log)
        self.worker.wsgi = self.program
        self.thread = threading.Thread(target=self.worker.run, daemon=True)
        self.thread.start()
        self.clients: list[socket.socket] = []

    def client(self, sent: bytes = b"") -> socket.socket:
        """A connection that has sent something."""
        client = socket.create_connection(self.address, 20)
        self.clients.append(client)
        client.sendall(sent)
        return client

    def get(self, *paths: str) -> socket.socket:
        """A connection that has asked for ``paths``, all at once."""
        return self.client(b"".join(get(path) for path in paths))

    def busy(self, count: int = 1) -> list[socket.socket]:
        """So many connections, each of which has a thread at work."""
        clients = [self.get("/wait") for _ in range(count)]
        for _ in clients:
            assert self.program.waiting.acquire(timeout=20)
        return clients

    @property
    def channels(self) -> list:
        return [one for server in self.worker.servers for one in server.active_channels.values()]

    @property
    def is_listening(self) -> bool:
        return any(server.socket is not None for server in self.worker.servers)

    def stop(self) -> None:
        self.worker.handle_exit(15, None)

    def has_ended(self, seconds: float = 20) -> bool:
        self.thread.join(seconds)
        return not self.thread.is_alive()

    def end(self) -> None:
        self.program.released.release(100)
        for client in self.clients:
            client.close()
        self.listener.close()
        self.stop()
        assert self.has_ended()
        long_poll.stopping.clear()  # only this server has stopped, not the process of the tests
        self.worker.tmp.close()


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode()


class Reader(io.BufferedReader):
    """What a connection receives; http.client closes its file after each answer."""

    def makefile(self, *_: object) -> Reader:
        return self

    def close(self) -> None:
        """Stay open for the next answer."""


READERS: WeakKeyDictionary[socket.socket, Reader] = WeakKeyDictionary()


def answer(client: socket.socket, method: str = "GET") -> tuple[http.client.HTTPResponse, bytes]:
    """The next answer, which must be complete."""
    found = http.client.HTTPResponse(_reader(client), method=method)
    found.begin()
    return found, found.read()


def received(client: socket.socket) -> bytes:
    """All bytes until the server closes, which it must do without a reset."""
    return _reader(client).read()


def _reader(client: socket.socket) -> Reader:
    return READERS.setdefault(client, Reader(socket.SocketIO(client, "r")))


def wait_until(holds: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.02)

"""A receiver of webhooks on a real HTTP server, and a sender in a thread."""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from flask import Flask

from app.webhooks.deliveries.sender import run_sender

PATIENCE = 30  # seconds


@dataclass(frozen=True)
class Received:
    """One request."""

    headers: Mapping[str, str]
    body: bytes
    at: float

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


@dataclass
class Receiver:
    """What came to :attr:`url`, and what is answered: ``status``, or that of ``judge``."""

    url: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"ok"
    delay: float = 0.0
    judge: Callable[[Received], int] | None = None
    received: list[Received] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def ids(self) -> list[str]:
        return [one.id for one in self.received]

    def wait_for(self, count: int) -> None:
        wait_until(lambda: len(self.received) >= count)


@contextmanager
def receiver(**options: Any) -> Iterator[Receiver]:
    """A running receiver."""
    found = Receiver(**options)
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.daemon_threads = True
        server.request_queue_size = 128
        server.receiver = found
        found.url = f"http://127.0.0.1:{server.server_port}/hook"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join(5)


@contextmanager
def sender(app: Flask) -> Iterator[None]:
    """A sender in a thread, until the end of the block."""
    stopped = threading.Event()
    thread = threading.Thread(target=run_sender, args=(app,), kwargs={"stop": stopped.is_set})
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(30)
        assert not thread.is_alive()


def wait_until(condition: Callable[[], Any], *, seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # the sender was killed
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        to: Receiver = self.server.receiver
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:  # the sender was killed
            self.close_connection = True
            return
        seen = Received({k.lower(): v for k, v in self.headers.items()}, body, time.monotonic())
        with to.lock:
            to.at_once += 1
            to.most_at_once = max(to.most_at_once, to.at_once)
        time.sleep(to.delay)
        status = to.judge(seen) if to.judge else to.status
        with to.lock:
            to.at_once -= 1
            to.received.append(seen)
        self.send_response(status)
        for name, value in to.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(to.body)))
        self.end_headers()
        self.wfile.write(to.body)

    def log_message(self, *_: object) -> None:
        return

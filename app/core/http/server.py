"""The gunicorn worker class: waitress' loop reads and writes, threads run the application.

waitress reads a request completely before a thread gets it, and buffers the answer. So a slow
client occupies no thread. After SIGTERM or ``max_requests`` a process accepts no new connection,
and answers the requests that have begun. The process ends when no connection is open, or when no
request runs and no byte came for :data:`QUIET` seconds, at the latest after ``graceful_timeout``.
"""

from __future__ import annotations

import itertools
import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from gunicorn.workers import base
from waitress import create_server, wasyncore
from werkzeug.wsgi import ClosingIterator

from app.core.http.body_limits import largest_body

IDLE = 30  # seconds; a connection without a byte in either direction is closed
QUIET = 2.0  # seconds
# In bytes: the connection is closed after a larger answer. So a client that sends many requests and
# reads nothing stays below the 16 MiB of buffered answers at which waitress blocks a thread.
LARGE = 128 * 1024
FRAMING = 1024 * 1024  # bytes that chunked encoding may add to a body


class Worker(base.Worker):
    """One web process, without TLS."""

    def run(self) -> None:
        """Serve until ``alive`` is False, then finish the open requests."""
        logging.getLogger("waitress").setLevel(logging.WARNING)
        logging.getLogger("waitress").addFilter(_shorten)
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        self.numbers = itertools.count(1)
        self.running: set[int] = set()  # numbers of requests
        self.map: dict[int, Any] = {}
        listeners = [_listener(one.detach()) for one in self.sockets]
        address = listeners[0].getsockname()  # a path for a Unix socket
        create_server(
            self._answer,
            map=self.map,
            sockets=listeners,
            server_name=address[0] if isinstance(address, tuple) else "localhost",
            threads=self.cfg.threads,
            backlog=self.cfg.backlog,
            connection_limit=self.cfg.worker_connections,
            channel_timeout=IDLE,
            cleanup_interval=1,
            recv_bytes=2048,
            max_request_header_size=32 * 1024,
            max_request_body_size=largest_body() + FRAMING,
            ident=None,
            clear_untrusted_proxy_headers=False,  # wsgi.py decides which proxies to trust
            log_socket_errors=False,
        )
        own = set(self.map)
        while self.alive:
            self._turn(1.0)
        for listener in listeners:
            del self.map[listener.fileno()]
            listener.close()
        end = time.monotonic() + self.cfg.graceful_timeout
        while self.map.keys() - own and time.monotonic() < end:
            began = time.monotonic()
            self._turn(QUIET)
            if not self.running and time.monotonic() - began >= QUIET:
                break

    def _turn(self, seconds: float) -> None:
        """Read and write sockets once; wait at most ``seconds`` until a connection is ready."""
        wasyncore.loop(timeout=seconds, use_poll=True, map=self.map, count=1)
        self.notify()
        if os.getppid() != self.ppid:
            self.alive = False

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
        """Run the application, and close the connection after the answer where it must close."""

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            length = next((int(value) for name, value in headers if name == "Content-Length"), 0)
            is_last = not self.alive or length > LARGE or "HTTP_TRANSFER_ENCODING" in environ
            if is_last and environ["REQUEST_METHOD"] != "HEAD":
                # Without a length waitress sends chunks, and closes the connection after them.
                headers = [one for one in headers if one[0] != "Content-Length"]
            return start_response(status, headers, exc_info)

        number = next(self.numbers)
        self.running.add(number)
        if number >= self.max_requests:
            self.alive = False
        try:
            with closing(ClosingIterator(self.wsgi(environ, start))) as body:
                yield from body
        finally:
            self.running.remove(number)


def _listener(fileno: int) -> socket.socket:
    """The listening socket. On Linux each accepted connection inherits its options."""
    listener = socket.socket(fileno=fileno)
    # Read TCP urgent data like other bytes: unread, they would keep the loop busy.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
    if listener.family != socket.AF_UNIX and hasattr(socket, "TCP_USER_TIMEOUT"):
        # The kernel closes the connection of a client that reads nothing; waitress cannot.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, IDLE * 1000)
    return listener


def _shorten(record: logging.LogRecord) -> bool:
    """A log filter that removes the traceback of waitress' own errors.

    Most of these errors mean that a client has closed its connection.
    """
    if record.exc_info:
        vars(record).update(reason=repr(record.exc_info[1]), exc_info=None)
    return True

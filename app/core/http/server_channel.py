"""One connection of the server, and its time limits in seconds.

- A request must arrive completely: gunicorn's ``timeout`` from its first byte, then 408.
- The client must read the answer: gunicorn's ``timeout`` without progress, then a reset.
- The next request must begin: gunicorn's ``keepalive``, then the connection is closed.
- After the last answer the client must close the connection (RFC 9112, 9.6): :data:`LINGER`.
"""

from __future__ import annotations

import math
import socket
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from waitress.channel import HTTPChannel
from waitress.server import BaseWSGIServer

from app.core.http.server_messages import Parser, Refusal, Task, TimedOut

if TYPE_CHECKING:
    from app.core.http.server import Worker

LINGER = 2.0
MAX_UNREAD = 1024 * 1024  # bytes of answers on one connection; above it no further request runs
SEND_BUFFER = 128 * 1024  # bytes of an answer in the kernel; Linux doubles the number
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: drop what was not sent


class Channel(HTTPChannel):
    """One connection. A thread calls :meth:`service`, the loop calls the other methods."""

    parser_class = Parser
    task_class = Task
    error_task_class = Refusal

    request: Any  # the one that is arriving
    will_close: bool
    is_running: bool = False
    is_lingering: bool = False
    is_postponed: bool = False

    def __init__(
        self,
        worker: Worker,
        server: BaseWSGIServer,
        sock: socket.socket,
        *args: Any,
        **options: Any,
    ) -> None:
        self.worker = worker
        self.since = time.monotonic()  # the time limit counts from here
        self.local_host = "localhost" if sock.family == socket.AF_UNIX else sock.getsockname()[0]
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        super().__init__(server, sock, *args, **options)

    @property
    def time_limit(self) -> float:
        """Seconds that the current state may last; infinite while a thread runs the application."""
        if self.is_lingering:
            return LINGER
        if self.total_outbufs_len:
            return float(self.worker.cfg.timeout)
        if self.requests or self.is_running:
            return math.inf
        if self.request is not None:
            return float(self.worker.cfg.timeout)
        keepalive = float(self.worker.cfg.keepalive)
        return keepalive if self.worker.alive else min(keepalive, LINGER)

    @property
    def is_ending(self) -> bool:
        """Whether the process stops and this connection's current answer is the last one."""
        return not self.worker.alive and self.request is None and len(self.requests) == 1

    @property
    def buffered(self) -> int:
        """Bytes of bodies and answers."""
        bodies = [one.body_rcv for one in (*self.requests, self.request) if one is not None]
        return int(self.total_outbufs_len) + sum(len(body) for body in bodies if body is not None)

    def received(self, data: bytes) -> bool:
        """Parse bytes; the time limit of a request counts from its first byte."""
        if self.is_lingering:
            return False
        if self.request is None and data.strip():  # blank lines between requests do not count
            self.since = time.monotonic()
        return bool(super().received(data))

    def service(self) -> None:
        """Answer the next request, but not while more than :data:`MAX_UNREAD` bytes are unsent."""
        with self.outbuf_lock:
            self.is_postponed = self.total_outbufs_len > MAX_UNREAD
            if self.is_postponed:
                return
            self.is_running = True
        try:
            super().service()
        except BaseException:
            self.cancel()
            self.server.pull_trigger()
            raise
        finally:
            self.since = time.monotonic()
            self.is_running = False  # last: from here on the time limit of the next request holds
        self.worker.count_request()

    def write_soon(self, data: Any) -> int:
        """Add a part of an answer; the time limit for reading counts from the first one."""
        if not self.total_outbufs_len:
            self.since = time.monotonic()
        return int(super().write_soon(data))

    def handle_write(self) -> None:
        """Send as much as the client accepts."""
        super().handle_write()
        self.since = time.monotonic()
        if self.is_postponed and self.total_outbufs_len <= MAX_UNREAD:
            self.is_postponed = False
            self.server.add_task(self)

    def handle_expt(self) -> None:
        """Close after TCP urgent data: HTTP has none, and unread it would keep the loop busy."""
        self.handle_close()

    def handle_close(self) -> None:
        """Close. After a complete answer wait for the client's close first.

        An immediate close could be a reset, by which the client would lose the answer.
        """
        has_answered = self.will_close and not self.is_lingering and not self.total_outbufs_len
        if has_answered and self._shut_down_sending():
            self.is_lingering, self.will_close, self.since = True, False, time.monotonic()
        else:
            super().handle_close()

    def expire(self) -> None:
        """End what exceeds its time limit: reset an unread answer, answer 408, or close."""
        if self.total_outbufs_len:
            self.abort()
        elif self.request is not None and not self.is_lingering:
            with self.requests_lock:
                self.request.error = TimedOut("")
                self.requests.append(self.request)
                self.request = None
                self.server.add_task(self)
        else:
            self.will_close = True
            self.handle_close()

    def abort(self) -> None:
        """Close with a reset; the kernel drops the unsent bytes."""
        with suppress(OSError):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        super().handle_close()

    def _shut_down_sending(self) -> bool:
        """Tell the client that nothing follows; False if the connection is broken."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            return False
        return True

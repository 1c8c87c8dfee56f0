"""gunicorn's threads, each of which waits for requests itself.

In gunicorn's own ``gthread`` one thread waits for all connections, hands each request to another and
is handed the connection back: four changes of threads for a request, each of which waits for the
interpreter's lock. Here all threads wait at one epoll, which gives a request to one of them
("leader/followers"): a fifth less work for a read, and a thread that is busy asks for nothing.

A connection that is kept open stays with its worker, so who accepts matters: one worker may end with
most of them while another idles. A worker all of whose threads are at work leaves a new connection
to the others for :data:`PAUSE`.

A worker told to stop takes the connections that are made already, then listens no more, and answers
what they send within :data:`LINGER`: gunicorn's own cuts off who stands in the queue.
"""

from __future__ import annotations

import os
import select
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker

PAUSE = 0.005  # seconds that a busy worker leaves a new connection to another one
LINGER = 2.0  # seconds for which an ending connection waits for the client
ONE_EVENT = select.EPOLLIN | select.EPOLLONESHOT


class Together(socket.socket):
    """A connection that needs fewer system calls, at each of which another thread may cut in.

    The first piece of an answer, its head, is sent with the second one, so in one packet. And the
    kernel is told of a new time-out when something waits for so long: gunicorn changes it four
    times for a request without a body.
    """

    def __init__(self, given: socket.socket) -> None:
        super().__init__(given.family, given.type, given.proto, fileno=given.detach())
        super().settimeout(None)
        self._seconds: float | None = None
        self._has_begun = False
        self._held = b""

    def gettimeout(self) -> float | None:
        """Seconds; None without end."""
        return self._seconds

    def settimeout(self, value: float | None) -> None:
        """What holds from the next call on."""
        self._seconds = value

    def setblocking(self, flag: bool) -> None:
        """The same: without end, or not at all."""
        self._seconds = None if flag else 0.0

    def recv(self, *args: Any) -> bytes:
        """Receive something."""
        self._prepare()
        return super().recv(*args)

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Send a piece of an answer, sooner or later."""
        if self._has_begun:
            self._prepare()
            held, self._held = self._held, b""
            super().sendall(held + data if held else data, flags)
        else:
            self._has_begun, self._held = True, data

    def sendfile(self, *args: Any, **options: Any) -> int:
        """Send a file, after what is held."""
        self.sendall(b"")
        return super().sendfile(*args, **options)

    def end(self) -> None:
        """Send what is held; what comes next is another answer."""
        with suppress(OSError):  # the client is gone, which shows when it is read from
            if self._held:
                self.sendall(b"")
        self._has_begun = False

    def _prepare(self) -> None:
        if self._seconds != super().gettimeout():
            super().settimeout(self._seconds)


class Worker(ThreadWorker):
    """One process of the server; ``keepalived_conns`` are the connections that no thread is at."""

    told_to_stop = False

    def run(self) -> None:
        """Take connections until told to stop, while the threads answer; then let them end."""
        self.opened: set[TConn] = set()
        self.parting: set[TConn] = set()
        self.keepalived_conns: dict[int, TConn] = {}
        self.readable = select.epoll()
        self.answered = threading.Event()
        for _ in range(self.cfg.threads):
            threading.Thread(target=self._serve, daemon=True).start()
        self.poller.register(self.PIPE[0], selectors.EVENT_READ)  # where signals arrive
        for listener in self.sockets:
            listener.setblocking(False)
            self.poller.register(listener, selectors.EVENT_READ)
        while self.alive and self.is_parent_alive():
            self.notify()
            self._take_new()
            self._close_overdue()
        self._stop()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """SIGTERM."""
        self.told_to_stop = True
        self.alive = False

    def enqueue_req(self, conn: TConn) -> None:
        """Have a new connection wait for its first request."""
        conn.sock = Together(conn.sock)
        self.opened.add(conn)
        conn.data_ready = True  # when a thread gets it
        self._wait(conn, time.monotonic() + self.cfg.keepalive, self.readable.register)

    def _take_new(self) -> None:
        """Wait at most a second for a new connection or a signal."""
        for key, _ in self.poller.select(1.0):
            if key.fileobj == self.PIPE[0]:
                os.read(self.PIPE[0], 4096)
            elif self._has_room():
                self.accept(key.fileobj)

    def _has_room(self) -> bool:
        """Whether there may be one more connection; answered late where all threads are at work."""
        kept = sum(conn.initialized for conn in list(self.keepalived_conns.values()))
        is_full = len(self.opened) >= self.worker_connections
        if is_full or len(self.opened) - kept >= self.cfg.threads:
            self.answered.clear()
            self.answered.wait(PAUSE)
        return not is_full

    def _serve(self) -> None:
        """What a thread does: answer the next request, whichever connection it comes from."""
        while True:
            for number, _ in self.readable.poll(maxevents=1):
                conn = self.keepalived_conns.pop(number, None)
                if conn in self.parting:
                    self._part(conn)
                elif conn is not None:  # not closed a moment ago
                    self._answer(conn)

    def _answer(self, conn: TConn) -> None:
        """Answer a request, and those that came with it."""
        stays = has_more = True
        try:
            while stays and has_more:
                stays = self.handle(conn)
                if isinstance(conn.sock, Together):  # not one with TLS
                    conn.sock.end()
                has_more = stays and conn.parser.unreader.buf.getvalue()
        except BaseException:  # a thread must not end
            self.log.exception("Error handling request")
            stays = False
        if stays:
            seconds = self.cfg.keepalive if self.alive else LINGER
            self._wait(conn, time.monotonic() + seconds, self.readable.modify)
        else:
            self._part(conn)
        self.answered.set()

    def _part(self, conn: TConn) -> None:
        """Say that a connection ends; it is closed when the client has closed it (RFC 9112, 9.6)."""
        try:
            if conn not in self.parting:
                conn.sock.shutdown(socket.SHUT_WR)
                conn.sock.setblocking(False)
                conn.timeout = time.monotonic() + LINGER
                self.parting.add(conn)
            is_over = not conn.sock.recv(65536)
        except BlockingIOError:
            is_over = False
        except OSError:
            is_over = True
        if is_over:
            self._close(conn)
        else:
            self._wait(conn, conn.timeout, self.readable.modify)

    def _wait(self, conn: TConn, until: float, how: Callable[[int, int], object]) -> None:
        """Let any thread go on with a connection when the client has sent something."""
        number = conn.sock.fileno()
        conn.timeout = until
        self.keepalived_conns[number] = conn
        how(number, ONE_EVENT)

    def _close_overdue(self) -> None:
        now = time.monotonic()
        for number, conn in list(self.keepalived_conns.items()):
            if conn.timeout <= now and self.keepalived_conns.pop(number, None):
                self._close(conn)

    def _close(self, conn: TConn) -> None:
        self.parting.discard(conn)
        self.opened.discard(conn)
        conn.close()
        self.answered.set()

    def _stop(self) -> None:
        """Take no more connections, and wait for those that there are."""
        self.alive = False
        for listener in self.sockets:
            if self.told_to_stop:
                self._take_waiting(listener)
            listener.close()
        now = time.monotonic()
        for conn in list(self.keepalived_conns.values()):
            conn.timeout = min(conn.timeout, now + LINGER)
        while self.opened and time.monotonic() < now + self.cfg.graceful_timeout:
            self.notify()
            self.answered.clear()
            self.answered.wait(0.1)
            self._close_overdue()

    def _take_waiting(self, listener: socket.socket) -> None:
        taken = -1
        while taken < self.nr_conns:  # which grows with each connection taken
            taken = self.nr_conns
            self.accept(listener)

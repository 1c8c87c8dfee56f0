"""gunicorn's threads, each of which waits for requests itself; Linux, and no TLS.

In gunicorn's own ``gthread`` one thread waits for all connections, hands each request to another and
is handed the connection back: four changes of threads for a request, each of which waits for the
interpreter's lock. Here all threads wait at one epoll, which gives a request to one of them
("leader/followers"): a fifth less work for a read, and a thread that is busy asks for nothing.

What an answer of PostgreSQL wakes does not push aside what runs (SCHED_BATCH, sched(7)): with more
threads than cores that only costs changes of threads, up to a tenth of the answers per second.

A connection that is kept open stays with its worker, so who accepts matters: one worker may end with
most of them while another idles. A worker all of whose threads are at work leaves a new connection
to the others for :data:`PAUSE`.

A worker told to stop takes the connections that are made already, then listens no more, and answers
what they have sent or send within :data:`LINGER`: gunicorn's own cuts off who stands in the queue.
What takes longer than ``graceful_timeout`` is cut off, and so is everything by SIGINT and SIGQUIT.
"""

from __future__ import annotations

import errno
import os
import select
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any

from gunicorn import util
from gunicorn.errors import ConfigError
from gunicorn.http import message
from gunicorn.workers.gthread import TConn, ThreadWorker

PAUSE = 0.005  # seconds that a busy worker leaves a new connection to another one
PATIENCE = 5.0  # seconds for which a new connection may send nothing
LINGER = 2.0  # seconds for which an ending connection waits for the client
INTERVAL = 0.1  # seconds between two looks for connections that are overdue
MOST_KNOWN = 1_000  # addresses
MOST_DRAINED = 6 << 20  # bytes of a request that nobody reads; the largest body and more
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ENOSPC)


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

    def shutdown(self, how: int) -> None:
        """End, after what is held."""
        self.end()
        super().shutdown(how)

    def end(self) -> None:
        """Send what is held; what comes next is another answer."""
        with suppress(OSError):  # the client is gone, which shows when it is read from
            if self._held:
                self.sendall(b"")
        self._has_begun = False

    def is_silent(self) -> bool:
        """Whether the client has sent nothing that was not read, not even an end."""
        now = select.poll()
        now.register(self, select.POLLIN)
        return not now.poll(0)

    def _prepare(self) -> None:
        if self._seconds != super().gettimeout():
            super().settimeout(self._seconds)


@cache
def remember() -> None:
    """Have gunicorn find out once what it finds out for each request: a twentieth of a read's work.

    That is how the current second is spelt, and whether an address is one of a proxy's.
    """
    spell, look = util.http_date, message._ip_in_allow_list
    at_second: Callable[[int], str] = lru_cache(1)(spell)
    known: dict[tuple[str, ...], bool] = {}

    def is_in(address: str, allowed: list[str], networks: Any) -> bool:
        key = (address, *allowed)
        found = known.get(key)
        if found is None:
            if len(known) >= MOST_KNOWN:
                known.clear()
            found = known[key] = look(address, allowed, networks)
        return found

    def http_date(timestamp: float | None = None) -> str:
        return at_second(int(time.time() if timestamp is None else timestamp))

    util.http_date, message._ip_in_allow_list = http_date, is_in


class Worker(ThreadWorker):
    """One process of the server; ``keepalived_conns`` are the connections that no thread is at.

    Whoever takes a connection out of that owns it: a thread when something has come, and the worker's
    own thread when nothing has for too long.
    """

    told_to_stop = False

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        """What cannot be had; raises ConfigError."""
        super().check_config(cfg, log)
        if cfg.is_ssl:
            raise ConfigError("TLS is for a proxy in front; this worker has none.")

    def run(self) -> None:
        """Take connections until told to stop, while the threads answer; then let them end."""
        self.opened: set[TConn] = set()
        self.parting: dict[TConn, int] = {}  # how much more each may send
        self.keepalived_conns: dict[int, TConn] = {}
        self.readable = select.epoll()
        self.answered = threading.Event()
        self.last_look = 0.0
        # Settings do not change any more; as plain attributes they are found at once.
        self.cfg.__dict__.update((name, one.get()) for name, one in self.cfg.settings.items())
        remember()
        with suppress(OSError):  # where that is not allowed, it is only slower
            if os.sched_getscheduler(0) == os.SCHED_OTHER:
                os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
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
        conn.data_ready = True  # when a thread gets it
        self.readable.register(conn.sock, select.EPOLLONESHOT)
        self.opened.add(conn)
        self._wait(conn, time.monotonic() + PATIENCE)

    def _take_new(self) -> None:
        """Wait at most a second for a new connection or a signal."""
        for key, _ in self.poller.select(1.0):
            if key.fileobj == self.PIPE[0]:
                os.read(self.PIPE[0], 4096)
            elif self._has_room():
                self._accept(key.fileobj)

    def _has_room(self) -> bool:
        """Whether there may be one more connection; answered late where all threads are at work."""
        kept = sum(conn.initialized for conn in self.keepalived_conns.copy().values())
        is_full = len(self.opened) >= self.worker_connections
        if is_full or len(self.opened) - kept >= self.cfg.threads:
            self.answered.clear()
            self.answered.wait(PAUSE)
        return not is_full

    def _accept(self, listener: socket.socket) -> None:
        try:
            self.accept(listener)
        except OSError as fault:
            if fault.errno not in EXHAUSTED:
                raise
            self.log.warning("No connection can be taken: %s", fault)
            time.sleep(INTERVAL)

    def _serve(self) -> None:
        """What a thread does: go on with the next connection from which something has come."""
        while True:
            conn = None
            try:
                ((number, _),) = self.readable.poll(maxevents=1)
                conn = self.keepalived_conns.pop(number, None)
                if conn in self.parting:
                    self._part(conn)
                elif conn is not None:  # not closed a moment ago
                    self._answer(conn)
            except BaseException:  # a thread must not end
                self.log.exception("Error in a thread of the server")
                if conn is not None:
                    self._close(conn)

    def _answer(self, conn: TConn) -> None:
        """Answer a request."""
        try:
            stays = self.handle(conn)
        except BaseException:  # of the application
            self.log.exception("Error handling request")
            stays = False
        if stays:
            self._wait(conn, time.monotonic() + (self.cfg.keepalive if self.alive else LINGER))
        else:
            self._part(conn)
        self.answered.set()

    def _keepalive_after(self, conn: TConn, keepalive: bool) -> bool:
        conn.sock.end()  # before the rest of the request is waited for
        stays = bool(super()._keepalive_after(conn, keepalive))
        if stays:
            conn.parser.mesg = None  # read to its end, so nobody need look again
        return stays

    def _part(self, conn: TConn) -> None:
        """Say that a connection ends; it is closed when the client has closed it (RFC 9112, 9.6)."""
        try:
            if conn not in self.parting:
                conn.sock.shutdown(socket.SHUT_WR)
                conn.sock.setblocking(False)
                conn.timeout = time.monotonic() + LINGER
                self.parting[conn] = MOST_DRAINED
            received = len(conn.sock.recv(65536))
            self.parting[conn] -= received
            is_over = not received or self.parting[conn] < 0 or conn.timeout < time.monotonic()
        except BlockingIOError:
            is_over = False
        except OSError:
            is_over = True
        if is_over:
            self._close(conn)
        else:
            self._wait(conn, conn.timeout)

    def _wait(self, conn: TConn, until: float) -> None:
        """Let any thread go on with a connection when something has come."""
        number = conn.sock.fileno()
        # What was read already makes no event; but it can be written to, so that makes one.
        event = select.EPOLLOUT if self._has_more(conn) else select.EPOLLIN
        conn.timeout = until
        self.keepalived_conns[number] = conn
        with suppress(OSError):  # it was overdue, and has just been closed
            self.readable.modify(number, event | select.EPOLLONESHOT)

    def _has_more(self, conn: TConn) -> bool:
        """Whether a further request, or a part of it, was read already."""
        if conn.parser is None or conn in self.parting:
            return False
        return bool(conn.parser.unreader.buf.getvalue())

    def _close_overdue(self) -> None:
        """Close the connections from which nothing has come for too long."""
        now = time.monotonic()
        if now - self.last_look < INTERVAL:
            return
        self.last_look = now
        for number, conn in self.keepalived_conns.copy().items():
            if conn.timeout <= now and self.keepalived_conns.pop(number, None):
                if conn.timeout <= now and conn.sock.is_silent() and not self._has_more(conn):
                    self._close(conn)
                else:  # what it has sent waits for a thread, or a thread has just had it
                    self._wait(conn, conn.timeout)

    def _close(self, conn: TConn) -> None:
        self.parting.pop(conn, None)
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
        for conn in self.keepalived_conns.copy().values():
            conn.timeout = min(conn.timeout, now + LINGER)
        while self.opened and time.monotonic() < now + self.cfg.graceful_timeout:
            self.notify()
            self.answered.clear()
            self.answered.wait(INTERVAL)
            self._close_overdue()

    def _take_waiting(self, listener: socket.socket) -> None:
        taken = -1
        while taken < self.nr_conns:  # gunicorn counts each; of those open others may end meanwhile
            taken = self.nr_conns
            self._accept(listener)

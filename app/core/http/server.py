"""The gunicorn worker class: waitress' event loop reads and writes, threads run the application.

The loop reads each request completely before a thread gets it, and sends the answer that the
thread has left, so a slow client never occupies a thread. Deadlines, in seconds:

- ``timeout`` of gunicorn for a whole request, from its first byte: 408
- ``timeout`` without progress for an answer that the client does not read
- ``keepalive`` of gunicorn between two requests, and for the first byte of the first
- :data:`LINGER` for the client to close a connection that ends (RFC 9112, 9.6)

After SIGTERM a process takes the connections that wait in the queue and closes its listening
sockets. It answers every request that arrives within :data:`LINGER`, or has begun by then, with
``Connection: close``. It ends when no connection is open, after ``graceful_timeout`` at the latest.
"""

from __future__ import annotations

import itertools
import logging
import math
import os
import socket
import struct
import time
from contextlib import suppress
from functools import partial
from typing import Any

from gunicorn.errors import ConfigError
from gunicorn.workers import base
from waitress import create_server, wasyncore
from waitress.channel import HTTPChannel
from waitress.server import BaseWSGIServer

from app.core.http.server_messages import MAX_HEADERS, MAX_SENT, Parser, Refusal, Task, TimedOut

LINGER = 2.0
INTERVAL = 1.0  # seconds between two checks of the deadlines
PAUSE = 0.0001  # seconds, times open connections, for which a process leaves the next one to others
MAX_PAUSE = 0.002  # seconds
MAX_UNREAD = 1024 * 1024  # bytes of answers on one connection; above it no further request runs
MAX_BUFFERED = 128 * 1024 * 1024  # bytes of all requests and answers in one process
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: drop what was not sent


class Channel(HTTPChannel):
    """One connection. The loop calls all methods but :meth:`service`, which a thread calls."""

    parser_class = Parser
    task_class = Task
    error_task_class = Refusal

    request: Any  # the one that is arriving
    will_close: bool
    is_lingering: bool = False
    is_postponed: bool = False

    def __init__(self, worker: Worker, *args: Any, **options: Any) -> None:
        self.worker = worker
        self.since = worker.last_accept = time.time()  # the time limit counts from here
        super().__init__(*args, **options)

    @property
    def time_limit(self) -> float:
        """Seconds that the present state may last; infinity while a thread runs the application."""
        if self.is_lingering:
            return LINGER
        if self.total_outbufs_len:
            return float(self.worker.cfg.timeout)
        if self.requests:
            return math.inf
        if self.request is not None:
            return float(self.worker.cfg.timeout)
        keepalive = float(self.worker.cfg.keepalive)
        return keepalive if self.worker.alive else min(keepalive, LINGER)

    @property
    def buffered(self) -> int:
        """Bytes of bodies and answers."""
        bodies = [one.body_rcv for one in (*self.requests, self.request) if one is not None]
        return int(self.total_outbufs_len) + sum(len(body) for body in bodies if body is not None)

    def received(self, data: bytes) -> bool:
        """Parse what came; the time limit of a request counts from its first byte."""
        if self.is_lingering:
            return False
        before = self.request
        is_parsed = bool(super().received(data))
        if self.request is not before:
            self.since = time.time()
        return is_parsed

    def service(self) -> None:
        """Answer the next request, or leave it until the client has read the answers before it."""
        with self.outbuf_lock:
            self.is_postponed = self.total_outbufs_len > MAX_UNREAD
            if self.is_postponed:
                return
        if not self.worker.alive and self.request is None and len(self.requests) == 1:
            self.requests[0].headers["CONNECTION"] = "close"
            self.requests[0].connection_close = True
        try:
            super().service()
        except BaseException:
            self.cancel()
            self.server.pull_trigger()
            raise
        self.since = time.time()
        self.worker.count_request()

    def handle_write(self) -> None:
        """Send what the client takes."""
        super().handle_write()
        self.since = time.time()
        if self.is_postponed and self.total_outbufs_len <= MAX_UNREAD:
            self.is_postponed = False
            self.server.add_task(self)

    def handle_expt(self) -> None:
        """Close: HTTP has no urgent data, and the loop would report it for ever."""
        self.handle_close()

    def handle_close(self) -> None:
        """Close; where all was sent, only after the client has, or it could lose the answer."""
        if self.will_close and not self.is_lingering and not self.total_outbufs_len:
            with suppress(OSError):
                self.socket.shutdown(socket.SHUT_WR)
                self.is_lingering, self.will_close, self.since = True, False, time.time()
                return
        super().handle_close()

    def expire(self) -> None:
        """Do what is due when the time limit is over."""
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
        """Close at once, and have the kernel drop what the client has not read."""
        with suppress(OSError):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        super().handle_close()


class Worker(base.Worker):
    """One process of the server. It has no TLS."""

    servers: tuple[BaseWSGIServer, ...] = ()
    is_told_to_stop = False

    @classmethod
    def check_config(cls, cfg: Any, _log: Any) -> None:
        """Raise ConfigError for settings that do not work here."""
        if cfg.is_ssl:
            raise ConfigError("TLS is for a proxy in front; this worker has none.")

    def run(self) -> None:
        """Serve until told to stop, then finish what has begun."""
        logging.getLogger("waitress").setLevel(logging.WARNING)
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        self.counter = itertools.count(1)
        self.next_check = self.last_accept = 0.0
        self.map: dict[int, Any] = {}
        create_server(
            self.wsgi,
            map=self.map,
            sockets=[listener.sock for listener in self.sockets],
            threads=self.cfg.threads,
            backlog=self.cfg.backlog,
            connection_limit=self.cfg.worker_connections,
            max_request_header_size=MAX_HEADERS,
            max_request_body_size=MAX_SENT,
            ident=None,
            clear_untrusted_proxy_headers=False,  # wsgi.py decides which proxies to trust
            log_socket_errors=False,
        )
        self.servers = tuple(one for one in self.map.values() if isinstance(one, BaseWSGIServer))
        for server in self.servers:
            server.channel_class = partial(Channel, self)
        while self.alive:
            self._turn(self._accept_or_pause())
        self._drain()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """SIGTERM."""
        self.is_told_to_stop = True
        self._stop()

    def count_request(self) -> None:
        """Stop after gunicorn's ``max_requests``."""
        if next(self.counter) == self.max_requests:
            self.log.info("Autorestarting worker after %s requests.", self.max_requests)
            self._stop()

    def _stop(self) -> None:
        self.alive = False
        for server in self.servers:
            server.pull_trigger()

    def _accept_or_pause(self) -> float:
        """Decide whether the next turn may accept; the seconds that it may wait for events.

        A connection stays with its process. So the more of them a process has, the longer it leaves
        the next one to the others.
        """
        count = sum(len(server.active_channels) for server in self.servers)
        left = self.last_accept + min(MAX_PAUSE, count * PAUSE) - time.time()
        for server in self.servers:
            server.accepting = left <= 0
        return INTERVAL if left <= 0 else left

    def _turn(self, seconds: float) -> None:
        """Wait at most ``seconds`` for events, and handle them; check the deadlines now and then."""
        wasyncore.loop(timeout=seconds, use_poll=True, map=self.map, count=1)
        now = time.time()
        if now >= self.next_check:
            self.next_check = now + INTERVAL
            self._check(now)

    def _check(self, now: float) -> None:
        self.notify()
        if os.getppid() != self.ppid:
            self.alive = False
        channels = [
            one for server in self.servers for one in server.active_channels.copy().values()
        ]
        for channel in channels:
            if channel.since + channel.time_limit < now:
                channel.expire()
        waiting = [one for one in channels if one.time_limit < math.inf]
        buffered = sum(channel.buffered for channel in waiting)
        for channel in sorted(waiting, key=lambda one: one.since):
            if buffered <= MAX_BUFFERED:
                break
            buffered -= channel.buffered
            channel.abort()

    def _drain(self) -> None:
        end = time.time() + self.cfg.graceful_timeout
        for server in self.servers:
            if self.is_told_to_stop:
                _accept_all(server)
            wasyncore.dispatcher.close(server)  # the socket; threads still wake the loop
        while time.time() < end and any(server.active_channels for server in self.servers):
            self._turn(INTERVAL)


def _accept_all(server: BaseWSGIServer) -> None:
    """Accept the connections that wait in the kernel's queue."""
    before = -1
    while before < len(server.active_channels):
        before = len(server.active_channels)
        server.handle_accept()

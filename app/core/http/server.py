"""The gunicorn worker class: waitress' event loop reads and writes, threads run the application.

The loop reads a request completely before a thread gets it, and sends the thread's answer, so a
slow client never occupies a thread. :mod:`app.core.http.server_channel` has the deadlines.

After SIGTERM a process accepts the connections in the kernel's queue and closes its listening
sockets. It answers every request that has begun, or begins within two seconds, with
``Connection: close``, long polls at once. It ends when no connection is open, at the latest after
``graceful_timeout``.
"""

from __future__ import annotations

import errno
import itertools
import logging
import os
import socket
import time
from functools import partial
from typing import Any

from gunicorn.errors import ConfigError
from gunicorn.workers import base
from waitress import create_server, wasyncore
from waitress.server import BaseWSGIServer

from app.core.http.server_channel import Channel
from app.core.http.server_messages import MAX_HEADERS

INTERVAL = 1.0  # seconds between two checks of the deadlines
PAUSE = 0.0001  # seconds per open connection before a process accepts another one
MAX_PAUSE = 0.002  # seconds
# Bytes of requests and answers in one process; above it the oldest waiting connections are closed.
MAX_BUFFERED = 128 * 1024 * 1024


class Worker(base.Worker):
    """One web process, without TLS."""

    servers: tuple[BaseWSGIServer, ...] = ()
    is_told_to_stop = False

    @classmethod
    def check_config(cls, cfg: Any, _log: Any) -> None:
        """Raise ConfigError if gunicorn is configured for TLS, which this worker cannot serve."""
        if cfg.is_ssl:
            raise ConfigError("TLS is for a proxy in front; this worker has none.")

    def run(self) -> None:
        """Serve until told to stop, then finish the open requests."""
        logging.getLogger("waitress").setLevel(logging.WARNING)
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        self.counter = itertools.count(1)
        self.next_check = 0.0
        self.pause_end = 0.0  # of the pause before the next accept; 0 without a pause
        self.map: dict[int, Any] = {}
        create_server(
            self.wsgi,
            map=self.map,
            sockets=[Listener(self, listener.sock) for listener in self.sockets],
            threads=self.cfg.threads,
            backlog=self.cfg.backlog,
            connection_limit=self.cfg.worker_connections,
            max_request_header_size=MAX_HEADERS,
            ident=None,
            clear_untrusted_proxy_headers=False,  # wsgi.py decides which proxies to trust
            log_socket_errors=False,
        )
        self.servers = tuple(one for one in self.map.values() if isinstance(one, BaseWSGIServer))
        for server in self.servers:
            server.channel_class = partial(Channel, self)
        while self.alive:
            self._serve()
        self._drain()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Begin to stop, because of SIGTERM; the module describes how."""
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

    def may_accept(self) -> bool:
        """Whether to accept the next connection now; otherwise a pause begins.

        The pause grows with the number of open connections, so that all processes get equally many.
        """
        self.was_offered_connection = True
        count = sum(len(server.active_channels) for server in self.servers)
        if count and self.alive and not self.pause_end:
            self.pause_end = time.monotonic() + min(MAX_PAUSE, count * PAUSE)
            return False
        self.pause_end = 0.0
        return True

    def _serve(self) -> None:
        pause = self.pause_end - time.monotonic()
        is_pausing = pause > 0
        for server in self.servers:
            server.accepting = not is_pausing
        self.was_offered_connection = False
        self._turn(pause if is_pausing else INTERVAL)
        if not is_pausing and not self.was_offered_connection:
            self.pause_end = 0.0  # another process accepted it

    def _turn(self, seconds: float) -> None:
        """Handle events, or wait ``seconds`` for them; check the deadlines each :data:`INTERVAL`."""
        wasyncore.loop(timeout=seconds, use_poll=True, map=self.map, count=1)
        now = time.monotonic()
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
        waiting = [one for one in channels if not one.is_running]
        buffered = sum(channel.buffered for channel in channels)
        for channel in sorted(waiting, key=lambda one: one.since):
            if buffered <= MAX_BUFFERED:
                break
            buffered -= channel.buffered
            channel.abort()

    def _drain(self) -> None:
        end = time.monotonic() + self.cfg.graceful_timeout
        for server in self.servers:
            if self.is_told_to_stop:
                _accept_all(server)
            wasyncore.dispatcher.close(server)  # only the socket; threads need the trigger
        while time.monotonic() < end and any(server.active_channels for server in self.servers):
            self._turn(INTERVAL)


class Listener(socket.socket):
    """A listening socket that asks :meth:`Worker.may_accept` before each accept."""

    def __init__(self, worker: Worker, listener: socket.socket) -> None:
        super().__init__(listener.family, listener.type, listener.proto, listener.detach())
        self.worker = worker

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection; raises BlockingIOError for none."""
        if not self.worker.may_accept():
            raise BlockingIOError(errno.EAGAIN, "left to another process")
        return super().accept()


def _accept_all(server: BaseWSGIServer) -> None:
    """Accept the connections that wait in the kernel's queue."""
    before = -1
    while before < len(server.active_channels):
        before = len(server.active_channels)
        server.handle_accept()

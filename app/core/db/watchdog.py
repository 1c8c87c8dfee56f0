"""No call waits for PostgreSQL beyond its limit, not even for one that is frozen.

``statement_timeout`` is kept by the server, which does not while it is stopped; ``tcp_user_timeout``
is satisfied as long as the other kernel answers, and means nothing on a UNIX socket. So a thread looks
at the calls of this process now and then, and shuts the socket of one that is overdue: libpq
then reports a lost connection, as if the server had ended.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from weakref import WeakSet

log = logging.getLogger(__name__)

INTERVAL = 0.5


class Watch:
    """Around each call on one connection; entering and leaving costs less than a microsecond."""

    def __init__(self, descriptor: int, seconds: float, on_cut: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._seconds = seconds
        self._on_cut = on_cut
        self._deadline: float | None = None
        self._lock = threading.Lock()
        _watch_over(self)

    def __enter__(self) -> None:
        self._deadline = time.monotonic() + self._seconds

    def __exit__(self, *_: object) -> None:
        with self._lock:  # the descriptor is this connection's until here
            self._deadline = None

    @property
    def is_waiting(self) -> bool:
        """Whether there is a call now."""
        return self._deadline is not None

    def cut_if_overdue(self) -> None:
        """Shut the connection's socket if its call has waited for too long."""
        with self._lock:
            if self._deadline is None or time.monotonic() < self._deadline:
                return
            self._deadline = None
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(self._descriptor)) as it:
                it.shutdown(socket.SHUT_RDWR)
        self._on_cut()


on_look: list[Callable[[int], None]] = []
"""Told each :data:`INTERVAL` how many calls of this process wait for PostgreSQL."""

_watches: WeakSet[Watch] = WeakSet()
_lock = threading.Lock()
_thread: threading.Thread | None = None


def look() -> None:
    """Cut the calls that are overdue, and tell how many others there are."""
    with _lock:
        watches = list(_watches)
    for watch in watches:
        watch.cut_if_overdue()
    waiting = sum(watch.is_waiting for watch in watches)
    for told in on_look:
        told(waiting)


def _watch_over(watch: Watch) -> None:
    global _thread
    with _lock:
        _watches.add(watch)
        if _thread is None:
            _thread = threading.Thread(target=_patrol, name="watchdog", daemon=True)
            _thread.start()


def _patrol() -> None:
    while True:
        time.sleep(INTERVAL)
        try:
            look()
        except Exception:  # calls have to end the next time too
            log.exception("watchdog_failed")


def _start_anew() -> None:
    """In a fork there is no such thread, and the connections are the parent's."""
    global _lock, _thread, _watches
    _lock, _thread, _watches = threading.Lock(), None, WeakSet()


os.register_at_fork(after_in_child=_start_anew)

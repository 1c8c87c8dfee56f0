"""A circuit breaker for servers that do not answer."""

from __future__ import annotations

import threading
import time


class Breaker:
    """After a failure no thread may call the server for ``pause`` seconds. Then one may try."""

    def __init__(self, pause: float) -> None:
        self.pause = pause
        self._is_failing = False
        self._next_try = 0.0
        self._trier: int | None = None
        self._lock = threading.Lock()

    def permits(self) -> bool:
        """Whether this thread may call. While the breaker is open, one thread at a time may."""
        if not self._is_failing:
            return True
        with self._lock:
            me, now = threading.get_ident(), time.monotonic()
            if now >= self._next_try:
                self._trier, self._next_try = me, now + self.pause
            return self._trier == me

    def note_failure(self) -> None:
        """Open the breaker: from now on :meth:`permits` refuses threads."""
        with self._lock:
            self._is_failing, self._trier = True, None
            self._next_try = time.monotonic() + self.pause

    def note_success(self) -> None:
        """Close the breaker; all threads may call."""
        self._is_failing = False

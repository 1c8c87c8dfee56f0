"""Leaving alone, for a moment, a server that does not answer."""

from __future__ import annotations

import threading
import time


class Breaker:
    """Whether a server may be called: after a failure only by one thread in ``pause`` seconds."""

    def __init__(self, pause: float) -> None:
        self.pause = pause
        self._is_failing = False
        self._next_try = 0.0
        self._trier: int | None = None
        self._lock = threading.Lock()

    def permits(self) -> bool:
        """Whether the calling thread may call; one that may try may do so until it has failed."""
        if not self._is_failing:
            return True
        with self._lock:
            me, now = threading.get_ident(), time.monotonic()
            if now >= self._next_try:
                self._trier, self._next_try = me, now + self.pause
            return self._trier == me

    def note_failure(self) -> None:
        """Stop calls from here on."""
        with self._lock:
            self._is_failing, self._trier = True, None
            self._next_try = time.monotonic() + self.pause

    def note_success(self) -> None:
        """Let everybody call again."""
        self._is_failing = False

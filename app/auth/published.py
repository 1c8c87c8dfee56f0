"""Fetches JSON documents that an identity provider publishes: its keys and its metadata."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from app.core.json_text import Json
from app.core.outgoing import OPERATOR, FetchFailed

log = logging.getLogger(__name__)
Content = TypeVar("Content")


class Published(Generic[Content]):
    """A document at ``url``. ``content`` is the result of ``read``, or None before the first fetch.

    There is at most one fetch in :data:`COOL_DOWN` seconds. If a fetch fails, the last content
    stays in use. ``read`` converts the document. It raises ValueError, LookupError or TypeError if
    the document cannot be used.
    """

    COOL_DOWN = 30.0  # seconds
    MAX_AGE = 3600.0  # seconds after which the document is fetched again
    TIMEOUT = 2.0  # seconds
    MAX_SIZE = 1 << 20  # bytes

    def __init__(self, url: str, read: Callable[[Json], Content], lock: Any = None) -> None:
        self.content: Content | None = None
        self._url = url
        self._read = read
        self._lock = lock or threading.Lock()  # held during a fetch
        self._fetched = self._tried = float("-inf")

    @property
    def is_old(self) -> bool:
        return time.monotonic() - self._fetched > self.MAX_AGE

    def refresh(self, *, wait: bool) -> None:
        """Fetch the document, unless the last attempt was less than COOL_DOWN seconds ago.

        If another thread is fetching it: with ``wait``, wait for that thread; else return at once.
        """
        if not self._lock.acquire(blocking=wait):
            return
        try:
            if time.monotonic() - self._tried >= self.COOL_DOWN:
                self._tried = time.monotonic()
                document = OPERATOR.fetch(
                    self._url, timeout=self.TIMEOUT, max_bytes=self.MAX_SIZE, follow_redirects=True
                )
                self.content = self._read(json.loads(document))
                self._fetched = time.monotonic()
        except (FetchFailed, ValueError, LookupError, TypeError, RecursionError):
            fields = {"url": self._url}
            log.warning("identity_provider_fetch_failed", extra=fields, exc_info=True)
        finally:
            self._lock.release()

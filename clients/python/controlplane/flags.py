"""A tenant's flags in memory, read again when the service tells that they have changed."""

from __future__ import annotations

import json
import os
import random
from contextlib import suppress
from threading import Event, Thread
from typing import Any

import httpx

from .connection import ApiError

POLL = 30.0  # seconds between two reads while there is no stream
SILENCE = 40.0  # seconds without a byte; a stream sends some every 15 s


class Flags:
    """The values of all flags by OFREP, whose ``context`` may have a ``tenant_id``.

    The first ones are read at once; ApiError if they are refused. Without the service they stay.
    """

    def __init__(self, url: str, token: str, **context: Any) -> None:
        self._url, self._token, self._context = url.rstrip("/"), token, context
        self._values: dict[str, Any] = {}
        self._etag, self._stream, self._closed = "", "", Event()
        with suppress(httpx.HTTPError):
            self._read()
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        Thread(target=self._run, daemon=True).start()

    def get(self, key: str, default: Any = None) -> Any:
        """A flag's value; ``default`` if the plan has no such flag, or its value is null."""
        return self._values.get(key, default)

    def close(self) -> None:
        """Learn of no more changes."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.is_set():
            with suppress(httpx.HTTPError, ApiError):
                self._listen()
            self._closed.wait(random.uniform(1.0, 5.0))  # noqa: S311 - clients do not return together
            with suppress(httpx.HTTPError, ApiError):
                self._read()

    def _read(self, told: str = "") -> None:
        answer = httpx.post(
            f"{self._url}/ofrep/v1/evaluate/flags",
            params={"flagConfigEtag": told},
            json={"context": self._context},
            headers={"Authorization": f"Bearer {self._token}", "If-None-Match": self._etag},
        )
        if answer.is_client_error:
            raise ApiError(answer)
        if answer.status_code != 304:
            found = answer.raise_for_status().json()
            self._values = {one["key"]: one["value"] for one in found["flags"] if "value" in one}
            self._etag = answer.headers["ETag"]
            for one in found.get("eventStreams", ()):
                self._stream = one.get("url") or self._url + one["endpoint"]["requestUri"]

    def _listen(self) -> None:
        """Read the flags at each event until the stream ends. The first event comes at once."""
        with httpx.stream("GET", self._stream, timeout=httpx.Timeout(5.0, read=SILENCE)) as answer:
            if answer.is_error:  # there is no stream process, or the address is too old
                self._etag = ""
                self._closed.wait(POLL)
            for line in answer.iter_lines():
                if line.startswith("data:"):
                    self._read(json.loads(line[5:])["etag"])
                if self._closed.is_set():
                    return

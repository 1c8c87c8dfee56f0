"""Something in memory that is read again when the service tells that it has changed."""

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


class Following:
    """The first state is read at once; ApiError if it is refused. Without the service it stays.

    ``is_stream_open``: the stream's address is enough, without the token.
    """

    def __init__(self, url: str, token: str, *, is_stream_open: bool = True) -> None:
        self._url, self._etag, self._stream = url.rstrip("/"), "", ""
        self._headers = {"Authorization": f"Bearer {token}"}
        self._stream_headers = {} if is_stream_open else self._headers
        self._closed = Event()
        with suppress(httpx.HTTPError):
            self._read()
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def close(self) -> None:
        """Learn of no more changes."""
        self._closed.set()

    def _ask(self, told: str, headers: dict[str, str]) -> httpx.Response:
        """Request the state; ``told`` is the ETag that the stream has named."""
        raise NotImplementedError

    def _load(self, found: Any) -> None:
        """Take a new state, and the address of its stream."""
        raise NotImplementedError

    def _begin(self) -> None:
        Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while not self._closed.is_set():
            with suppress(httpx.HTTPError, ApiError):
                self._listen()
            self._closed.wait(random.uniform(1.0, 5.0))  # noqa: S311 - clients do not return together
            with suppress(httpx.HTTPError, ApiError):
                self._read()

    def _read(self, told: str = "") -> None:
        answer = self._ask(told, {**self._headers, "If-None-Match": self._etag})
        if answer.is_client_error:
            raise ApiError(answer)
        if answer.status_code != 304:
            self._load(answer.raise_for_status().json())
            self._etag = answer.headers["ETag"]

    def _listen(self) -> None:
        """Read again at each event until the stream ends. The first event comes at once."""
        silence = httpx.Timeout(5.0, read=SILENCE)
        with httpx.stream(
            "GET", self._stream, headers=self._stream_headers, timeout=silence
        ) as answer:
            if answer.is_error:  # there is no stream process, or the address is too old
                self._etag = ""
                self._closed.wait(POLL)
            for line in answer.iter_lines():
                if line.startswith("data:"):
                    self._read(json.loads(line[5:])["etag"])
                if self._closed.is_set():
                    return

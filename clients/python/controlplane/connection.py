"""A connection to the service: keys, retries, errors as exceptions, and pages."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from inspect import signature
from itertools import count
from typing import Any, Protocol, TypeVar
from uuid import uuid4

import httpx

from .client import AuthenticatedClient
from .types import Response

Row = TypeVar("Row", covariant=True)
KEY = "Idempotency-Key"
CONSISTENCY = "X-Consistency"
IN_PROGRESS = "idempotency_in_progress"
BROKEN = (httpx.NetworkError, httpx.RemoteProtocolError, httpx.TimeoutException)
MAX_PAUSE = 60.0  # seconds; a longer Retry-After is the caller's


class ApiError(Exception):
    """An error that the service answers.

    ``detail`` is its sentence, ``code`` its name for programs or None. ``errors`` lists what is
    wrong with the values of a 422.
    """

    def __init__(self, response: httpx.Response) -> None:
        is_json = "json" in response.headers.get("Content-Type", "")
        found: dict[str, Any] = response.json() if is_json else {}
        detail = found.get("detail") or found.get("errorDetails") or response.reason_phrase
        self.response, self.status = response, response.status_code
        self.code: str | None = found.get("code") or found.get("errorCode")
        self.errors: list[dict[str, Any]] = detail if isinstance(detail, list) else []
        faults = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in self.errors)
        self.detail = "; ".join(faults) or str(detail)
        super().__init__(f"{self.status} {self.code or ''}".strip() + f": {self.detail}")


class Transport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Sends requests, again where that is safe, and raises :class:`ApiError` for an error.

    Each POST gets an ``Idempotency-Key``. A GET, and any request with a key, is sent again after a
    connection error, 429, 503 and 409 ``idempotency_in_progress``. A read sees what earlier
    requests have changed, also on a replica.
    """

    def __init__(self, attempts: int) -> None:
        self._attempts = attempts
        self._last_change = ""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._prepare(request)
        for number in count(1):
            try:
                answer = self._direct.handle_request(request)
                if answer.is_error:
                    answer.read()
                pause = self._pause(request, answer, number)
            except BROKEN:
                if (pause := self._pause(request, None, number)) is None:
                    raise
            if pause is None:
                return self._checked(answer)
            time.sleep(pause)
        raise AssertionError

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self._prepare(request)
        for number in count(1):
            try:
                answer = await self._asynchronous.handle_async_request(request)
                if answer.is_error:
                    await answer.aread()
                pause = self._pause(request, answer, number)
            except BROKEN:
                if (pause := self._pause(request, None, number)) is None:
                    raise
            if pause is None:
                return self._checked(answer)
            await asyncio.sleep(pause)
        raise AssertionError

    def close(self) -> None:
        self._direct.close()

    async def aclose(self) -> None:
        await self._asynchronous.aclose()

    @cached_property
    def _direct(self) -> httpx.HTTPTransport:
        return httpx.HTTPTransport()

    @cached_property
    def _asynchronous(self) -> httpx.AsyncHTTPTransport:
        return httpx.AsyncHTTPTransport()

    def _prepare(self, request: httpx.Request) -> None:
        if request.method == "POST":
            request.headers.setdefault(KEY, str(uuid4()))
        if self._last_change:
            request.headers.setdefault(CONSISTENCY, self._last_change)

    def _pause(
        self, request: httpx.Request, answer: httpx.Response | None, number: int
    ) -> float | None:
        """The seconds until the request is sent again; None if it is not."""
        if number >= self._attempts or not (request.method == "GET" or KEY in request.headers):
            return None
        if answer is not None:
            is_running = answer.status_code == 409 and ApiError(answer).code == IN_PROGRESS
            if not is_running and answer.status_code not in (429, 503):
                return None
            after = answer.headers.get("Retry-After", "")
            if after.isdecimal():
                return float(after) if float(after) <= MAX_PAUSE else None
        jitter = random.uniform(0.1, 0.25)  # noqa: S311 - so that clients do not return together
        return jitter * 2.0**number

    def _checked(self, answer: httpx.Response) -> httpx.Response:
        if answer.is_error:
            raise ApiError(answer)
        self._last_change = answer.headers.get(CONSISTENCY, self._last_change)
        return answer


class Client(AuthenticatedClient):
    """The ``client`` that each function of :mod:`controlplane.api` takes."""

    def __init__(self, url: str, token: str, *, timeout: float = 30.0, attempts: int = 4) -> None:
        super().__init__(
            base_url=url.rstrip("/"),
            token=token,
            timeout=httpx.Timeout(timeout, connect=5.0),
            httpx_args={"transport": Transport(attempts)},
        )


class Page(Protocol[Row]):
    """An answer of a list."""

    @property
    def data(self) -> Sequence[Row]: ...

    @property
    def next_cursor(self) -> object: ...


def each(read: Callable[..., Page[Row] | None], *path: Any, **arguments: Any) -> Iterator[Row]:
    """The rows of all pages: ``each(users_list.sync, client=client, limit=100)``."""
    while page := read(*path, **arguments):
        yield from page.data
        if not page.data or not page.next_cursor:
            return
        arguments["after" if "after" in signature(read).parameters else "cursor"] = page.next_cursor


def etag(answer: Response[Any]) -> str:
    """The version of what ``sync_detailed`` has answered, for ``if_match``."""
    return answer.headers["ETag"]

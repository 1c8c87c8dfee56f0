"""Redis clients, all made here, so that none can hold a request for longer than configured.

Requests need Redis for nothing that PostgreSQL does not know as well. So where it does not answer,
it is left alone for :data:`PAUSE` seconds: one request waits for one time-out, the others for none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as Unreachable
from redis.exceptions import TimeoutError as TooSlow
from redis.retry import Retry

from app.core.circuit_breaker import Breaker

PAUSE = 5.0


class OneTry(Retry):
    """redis-py's retry policy: never again, and not at all while the breaker says no."""

    def __init__(self, breaker: Breaker) -> None:
        super().__init__(NoBackoff(), 0)
        self._breaker = breaker

    def __deepcopy__(self, memo: Any) -> OneTry:
        return self  # redis-py copies it for each connection, and the breaker is everybody's

    def call_with_retry(
        self, do: Callable[[], Any], fail: Callable[..., Any], *args: Any, **options: Any
    ) -> Any:
        """``do()``; raises redis' ConnectionError at once while the server is left alone."""
        if not self._breaker.permits():
            raise Unreachable("Redis did not answer a moment ago.")
        try:
            result = super().call_with_retry(do, fail, *args, **options)
        except (Unreachable, TooSlow, OSError):
            self._breaker.note_failure()
            raise
        self._breaker.note_success()
        return result


@cache
def _breaker(url: str) -> Breaker:
    return Breaker(PAUSE)


def request_options(url: str, timeout: float) -> dict[str, Any]:
    """How a client of requests is made: each call answers or fails within ``timeout`` seconds."""
    return {
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
        "retry": OneTry(_breaker(url)),
        "health_check_interval": 0,
    }


@cache
def request_client(url: str, timeout: float) -> Redis:
    """The client of requests."""
    return Redis.from_url(url, **request_options(url, timeout))


def worker_client(url: str) -> Redis:
    """The client of a worker, whose calls wait for the next job."""
    keepalive = {} if url.startswith("unix://") else {"socket_keepalive": True}
    return Redis.from_url(url, socket_connect_timeout=5, **keepalive)

"""The Redis client of requests.

When Redis does not answer, one thread tries again every :data:`PAUSE` seconds. All other calls fail
at once, so at most one request waits for the time-out.
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
    """redis-py's retry policy: one attempt, and none while the breaker is open."""

    def __init__(self, breaker: Breaker) -> None:
        super().__init__(NoBackoff(), 0)
        self._breaker = breaker

    def __deepcopy__(self, memo: object) -> OneTry:
        return self  # redis-py copies it for each connection; all share the breaker

    def call_with_retry(
        self, do: Callable[[], Any], fail: Callable[..., Any], *args: Any, **options: Any
    ) -> Any:
        """``do()``; raises redis' ConnectionError at once while the breaker is open."""
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
def request_client(url: str, timeout: float) -> Redis:
    """The client for requests: each call returns or fails within ``timeout`` seconds."""
    return Redis.from_url(
        url,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=OneTry(Breaker(PAUSE)),
    )

"""The Redis client that requests use.

After Redis has failed to answer, one thread tries it again every :data:`PAUSE` seconds. Until it
answers, all other calls fail at once, so only one request at a time waits for the time-out.
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
    """A retry policy of redis-py: one attempt per call, and none while the breaker refuses it."""

    def __init__(self, breaker: Breaker) -> None:
        super().__init__(NoBackoff(), 0)
        self._breaker = breaker

    def __deepcopy__(self, memo: object) -> OneTry:
        return self  # redis-py copies the policy for each connection; all must share the breaker

    def call_with_retry(
        self, do: Callable[[], Any], fail: Callable[..., Any], *args: Any, **options: Any
    ) -> Any:
        """Call ``do()``. Raises redis' ConnectionError at once if the breaker refuses."""
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
    """The client for requests. Connecting and answering may take ``timeout`` seconds each."""
    return Redis.from_url(
        url, socket_timeout=timeout, socket_connect_timeout=timeout, retry=OneTry(Breaker(PAUSE))
    )

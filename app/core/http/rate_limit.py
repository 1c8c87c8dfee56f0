"""Rate limits: per credential for all requests, per address for failed authentication.

Counted in Redis, so that all workers share them; while Redis is away each process counts for
itself, and no request fails for it. ``RATELIMIT_ENABLED=0`` turns them off. Answers that were
counted say so: ``RateLimit-Limit``, ``-Remaining`` and ``-Reset`` (seconds), as
draft-ietf-httpapi-ratelimit-headers-06 has them.
"""

from __future__ import annotations

import hashlib
import math
import time

from flask import Flask, Response, current_app, g, request
from flask_limiter import Limiter
from flask_limiter.util import get_remote_address
from limits import RateLimitItem, parse
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter, RateLimiter
from redis.exceptions import RedisError

from app.config import Config
from app.core.errors import AppError
from app.core.redis_clients import request_options

RATE_LIMITER = "rate_limiter"
FAILED_AUTHENTICATION = "failed-authentication"
PREFIX = "controlplane"


class TooManyRequests(AppError):
    """429: come back after ``Retry-After`` seconds."""

    status = 429


class FailedAuthentications:
    """Counts them per address, here while Redis is away."""

    def __init__(self, limiter: Limiter, limit: RateLimitItem) -> None:
        self._limiter = limiter
        self._limit = limit
        self._here = FixedWindowRateLimiter(MemoryStorage())

    def count(self, address: str) -> None:
        """Count one more; raises TooManyRequests beyond the limit."""
        place = (PREFIX, FAILED_AUTHENTICATION, address)
        try:
            self._count(self._limiter.limiter, place)
        except RedisError:
            self._count(self._here, place)

    def _count(self, counter: RateLimiter, place: tuple[str, ...]) -> None:
        is_allowed = counter.hit(self._limit, *place)
        window = counter.get_window_stats(self._limit, *place)
        g.rate_limit = (self._limit.amount, window.remaining, window.reset_time)
        if not is_allowed:
            raise TooManyRequests("Too many failed authentications from this address.")


def limit_requests(app: Flask, config: Config) -> None:
    """Bind the limits of ``config`` to ``app``."""
    app.config.update(
        RATELIMIT_ENABLED=config.ratelimit_enabled,
        RATELIMIT_STORAGE_URI=config.redis_url.replace("unix://", "redis+unix://", 1),
        RATELIMIT_STORAGE_OPTIONS=request_options(config.redis_url, config.redis_timeout),
        RATELIMIT_APPLICATION=config.ratelimit_default,
        RATELIMIT_IN_MEMORY_FALLBACK=config.ratelimit_default,
        RATELIMIT_KEY_PREFIX=PREFIX,
    )
    limiter = Limiter(key_func=caller, swallow_errors=True)
    limiter.request_filter(_is_public)
    limiter.init_app(app)
    failures = FailedAuthentications(limiter, parse(config.ratelimit_failed_auth))
    app.extensions[RATE_LIMITER] = (limiter, failures)
    if config.ratelimit_enabled:
        app.after_request(_show)


def caller() -> str:
    """Whom a request is counted for: its credential, or its address where it shows none.

    However the header is written: another spelling of the scheme is no other credential.
    """
    credential = request.headers.get("Authorization", "").partition(" ")[2].strip()
    if not credential:
        return get_remote_address()
    return hashlib.sha256(credential.encode("utf-8", "replace")).hexdigest()[:32]


def count_failed_authentication() -> None:
    """Count one failure for the request's address; raises TooManyRequests beyond the limit."""
    if current_app.config["RATELIMIT_ENABLED"]:
        _, failures = current_app.extensions[RATE_LIMITER]
        failures.count(get_remote_address())


def _is_public() -> bool:
    """Public endpoints are not limited: providers deliver webhooks in bursts."""
    view = current_app.view_functions.get(request.endpoint or "")
    return getattr(getattr(view, "access", None), "permission", None) is None


def _show(response: Response) -> Response:
    counted = g.get("rate_limit") or _counted_by_credential()
    if counted is not None:
        limit, remaining, reset_at = counted
        seconds = max(1, math.ceil(reset_at - time.time()))
        response.headers["RateLimit-Limit"] = str(limit)
        response.headers["RateLimit-Remaining"] = str(remaining)
        response.headers["RateLimit-Reset"] = str(seconds)
        if response.status_code == 429:
            response.headers["Retry-After"] = str(seconds)
    return response


def _counted_by_credential() -> tuple[int, int, float] | None:
    limiter, _ = current_app.extensions[RATE_LIMITER]
    current = limiter.current_limit
    if current is None:
        return None
    try:
        return current.limit.amount, current.window.remaining, current.window.reset_time
    except RedisError:
        return None

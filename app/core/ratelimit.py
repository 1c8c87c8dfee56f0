"""Rate limits: per credential for all requests, per address for failed authentication.

Counted in Redis, so that all workers share them; while Redis is away each process counts for
itself, and no request waits or fails for it. ``RATELIMIT_ENABLED=0`` turns them off.
"""

from __future__ import annotations

import hashlib

from flask import Flask, current_app, request
from flask_limiter import HeaderNames, Limiter
from flask_limiter.util import get_remote_address
from limits import parse
from redis.backoff import NoBackoff
from redis.retry import Retry

from app.config import Config
from app.core.errors import AppError


class TooManyRequests(AppError):
    """429: come back after ``Retry-After`` seconds."""

    status = 429


def caller() -> str:
    """Whom a request is counted for: its credential, or its address where it shows none."""
    credential = request.headers.get("Authorization")
    if credential is None:
        return get_remote_address()
    return hashlib.sha256(credential.encode("utf-8", "replace")).hexdigest()[:32]


limiter = Limiter(
    key_func=caller,
    headers_enabled=True,
    swallow_errors=True,
    header_name_mapping={
        HeaderNames.LIMIT: "RateLimit-Limit",
        HeaderNames.REMAINING: "RateLimit-Remaining",
        HeaderNames.RESET: "RateLimit-Reset",
    },
)


@limiter.request_filter
def is_public() -> bool:
    """Public endpoints are not limited here: providers deliver webhooks in bursts."""
    view = current_app.view_functions.get(request.endpoint or "")
    return getattr(getattr(view, "access", None), "permission", None) is None


def limit_requests(app: Flask, config: Config) -> None:
    """Bind the limits of ``config`` to ``app``."""
    app.config.update(
        RATELIMIT_ENABLED=config.ratelimit_enabled,
        RATELIMIT_STORAGE_URI=config.redis_url.replace("unix://", "redis+unix://", 1),
        RATELIMIT_STORAGE_OPTIONS={
            "socket_timeout": config.redis_timeout,
            "socket_connect_timeout": config.redis_timeout,
            "retry": Retry(NoBackoff(), 0),
        },
        RATELIMIT_APPLICATION=config.ratelimit_default,
        RATELIMIT_IN_MEMORY_FALLBACK=config.ratelimit_default,
        RATELIMIT_KEY_PREFIX="controlplane",
    )
    limiter.init_app(app)


def count_failed_authentication() -> None:
    """Count one failure for the request's address; raises TooManyRequests beyond the limit."""
    config: Config = current_app.extensions["config"]
    if not config.ratelimit_enabled:
        return
    allowed = parse(config.ratelimit_failed_auth)
    if not limiter.limiter.hit(allowed, "failed-authentication", get_remote_address()):
        raise TooManyRequests(
            "Too many failed authentications from this address.",
            headers={"Retry-After": str(allowed.get_expiry())},
        )

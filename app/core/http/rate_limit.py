"""Rate limits: per credential for guarded requests, per address for failed authentication.

Requests are counted in the process and summed with those of the other processes in the background,
see :mod:`app.core.http.rate_counts`. No request waits for Redis, and none fails without it.
``RATELIMIT_ENABLED=0`` turns the limits off. Responses to counted requests carry
``RateLimit-Limit``, ``-Remaining`` and ``-Reset`` (seconds) of
draft-ietf-httpapi-ratelimit-headers-06, and a 429 carries ``Retry-After``.

A request is counted before its credential is looked up, so one over the limit costs no statement.
Whether a credential is a platform credential is known after its first authentication in a process;
until then RATELIMIT_DEFAULT applies to it.
"""

from __future__ import annotations

import hashlib
import math
import time

from flask import Flask, Response, current_app, g

from app.config import Config, parse_rate
from app.core.errors import AppError
from app.core.http.application import Request, current_request
from app.core.http.rate_counts import RateCounts, Usage
from app.core.redis_clients import request_client

EXTENSION = "rate_limits"


class TooManyRequests(AppError):
    """429: the limit is reached; ``Retry-After`` is the number of seconds until it is lifted."""

    status = 429


class RateLimits:
    """The configured limits and the counts of one application."""

    def __init__(self, config: Config) -> None:
        self.default = parse_rate(config.ratelimit_default)
        self.platform = parse_rate(config.ratelimit_platform)
        self.failed_authentication = parse_rate(config.ratelimit_failed_auth)
        self.counts = RateCounts(request_client(config.redis_url, config.redis_timeout))


def limit_requests(app: Flask, config: Config) -> None:
    """Apply the limits of ``config`` to ``app``."""
    if config.ratelimit_enabled:
        app.extensions[EXTENSION] = RateLimits(config)
        app.before_request(_count_request)
        app.after_request(_add_headers)


def count_failed_authentication() -> None:
    """Count one failure for the request's address; raises TooManyRequests beyond the limit."""
    limits = _limits()
    if limits is None:
        return
    name = f"failed-authentication:{_address(current_request())}"
    usage = g.rate_limit = limits.counts.count(name, limits.failed_authentication)
    if not usage.is_allowed:
        raise TooManyRequests("Too many failed authentications from this address.")


def set_limit_of_credential(*, is_platform: bool) -> None:
    """Apply RATELIMIT_PLATFORM or RATELIMIT_DEFAULT to the credential of an authenticated request."""
    limits = _limits()
    usage: Usage | None = g.get("rate_limit")
    if limits is None or usage is None:
        return
    rate = limits.platform if is_platform else limits.default
    if usage.rate != rate:
        g.rate_limit = limits.counts.set_rate(usage.name, rate)


def _limits() -> RateLimits | None:
    return current_app.extensions.get(EXTENSION)


def _count_request() -> None:
    request = current_request()
    limits = _limits()
    if limits is None or _is_public(request):
        return
    usage = g.rate_limit = limits.counts.count(_bucket_name(request), limits.default)
    if not usage.is_allowed:
        raise TooManyRequests("Too Many Requests")


def _is_public(request: Request) -> bool:
    """Public endpoints are not limited, because providers deliver webhooks in bursts."""
    view = current_app.view_functions.get(request.endpoint or "")
    return getattr(getattr(view, "access", None), "permission", None) is None


def _bucket_name(request: Request) -> str:
    """The digest of the request's credential, or its address if it has none.

    The spelling of the scheme and white space make no difference. The token verifier refuses every
    spelling of a token but one.
    """
    credential = request.headers.get("Authorization", "").partition(" ")[2].strip()
    if not credential:
        return f"address:{_address(request)}"
    return hashlib.sha256(credential.encode("utf-8", "replace")).hexdigest()[:32]


def _address(request: Request) -> str:
    return request.remote_addr or "127.0.0.1"


def _add_headers(response: Response) -> Response:
    usage: Usage | None = g.get("rate_limit")
    if usage is not None:
        seconds = str(max(1, math.ceil(usage.ends_at - time.time())))
        response.headers["RateLimit-Limit"] = str(usage.rate.amount)
        response.headers["RateLimit-Remaining"] = str(usage.remaining)
        response.headers["RateLimit-Reset"] = seconds
        if response.status_code == 429:
            response.headers["Retry-After"] = seconds
    return response

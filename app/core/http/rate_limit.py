"""Rate limits: per credential for guarded requests, per address for failed authentication.

Each process counts its requests. A thread adds the counts of the other processes in the background,
see :mod:`app.core.http.rate_counts`. No request waits for Redis, and none fails without Redis.
``RATELIMIT_ENABLED=0`` turns the limits off. Public endpoints have no limit, because providers
deliver webhooks in bursts. Responses to counted requests have the headers ``RateLimit-Limit``,
``-Remaining`` and ``-Reset`` (seconds) of draft-ietf-httpapi-ratelimit-headers-06, and
``RateLimit-Policy`` and ``RateLimit`` of draft 11. A 429 also has ``Retry-After``.

A request is counted before its credential is looked up, so a request beyond the limit does not use
the database. If an address has reached the limit of failed authentications, the process looks up
only API keys and SCIM tokens that it has found before. The tokens of a SCIM connection also share
one limit, which is counted after the look-up. A process knows after the first authentication
whether a credential is a platform credential. Until then RATELIMIT_DEFAULT applies.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from flask import Response, current_app

from app.config import Config
from app.config_values import Rate, parse_rate
from app.core.errors import AppError, NotFound
from app.core.http.rate_counts import MAX_BUCKETS, RateCounts
from app.core.http.request import Request
from app.core.redis_clients import request_client

EXTENSION = "rate_limits"
FAILURES_OF = "failed-authentication:"  # followed by the address, the name of a bucket
WRONG_SECRETS = Rate(20, 3600)  # from one address
TOO_MANY_SECRETS = "Too many wrong tokens from this address."
TOO_MANY_FAILURES = "Too many failed authentications from this address."
IS_COUNTED = "controlplane.is_counted"
"""A key of the WSGI environment: the request is not counted. The console and commands set it."""


class TooManyRequests(AppError):
    """429: the limit is reached; ``Retry-After`` is in seconds."""

    status = 429


class RateLimits:
    """The limits of one application."""

    def __init__(self, config: Config) -> None:
        self._is_enabled = config.ratelimit_enabled
        self.counts = RateCounts(request_client(config.redis_url, config.redis_timeout))
        self._default = parse_rate(config.ratelimit_default)
        self._scim = parse_rate(config.ratelimit_scim)
        self._platform = parse_rate(config.ratelimit_platform)
        self._known: set[str] = set()  # names of credentials that the database has confirmed
        self._failed_authentication = parse_rate(config.ratelimit_failed_auth)

    def count_request(
        self, request: Request, credential: str | None = None, *, is_scim: bool = False
    ) -> None:
        """Count a request to a guarded endpoint; raises TooManyRequests beyond the limit.

        It counts for ``credential``, by default the credential in its header. If there is none, it
        counts for its address. A directory sends one request per person, so SCIM has its own limit.
        """
        if credential is None:
            if IS_COUNTED in request.environ:
                return
            credential = _credential_of(request)
        name = _name_of(credential) if credential else f"address:{request.remote_addr}"
        self._count(request, name, self._scim if is_scim else self._default, "Too Many Requests")

    def count_scim_connection(self, request: Request, connection_id: UUID) -> None:
        """Count a request for its SCIM connection; all tokens of a connection share the limit."""
        self._count(request, f"scim:{connection_id}", self._scim, "Too Many Requests")

    @contextmanager
    def looking_up(self, request: Request) -> Iterator[None]:
        """Run the block, which looks up the credential of the request's header in the database.

        Raises TooManyRequests before the block if the address has reached the limit of failures and
        this process has not found the credential before.
        """
        name = _name_of(_credential_of(request))
        if name not in self._known:
            # set_rate() reads the bucket without counting; the rate stays the same.
            usage = self.counts.set_rate(
                FAILURES_OF + str(request.remote_addr), self._failed_authentication
            )
            if usage is not None and not usage.remaining:
                request.usage = usage
                raise TooManyRequests(TOO_MANY_FAILURES)
        yield
        if len(self._known) >= MAX_BUCKETS:
            self._known.clear()
        self._known.add(name)

    def count_failed_authentication(self, request: Request) -> None:
        """Count one failure for the request's address; raises TooManyRequests beyond the limit."""
        self._count(
            request,
            FAILURES_OF + str(request.remote_addr),
            self._failed_authentication,
            TOO_MANY_FAILURES,
        )

    @contextmanager
    def guessing(self, request: Request, secret: str) -> Iterator[None]:
        """Run the block, which finds a row by a secret that the body has.

        NotFound in the block counts as a wrong ``secret`` of the request's address. After
        :data:`WRONG_SECRETS` it raises TooManyRequests before the block.
        """
        name = f"wrong-{secret}:{request.remote_addr}"
        usage = self.counts.set_rate(name, WRONG_SECRETS)
        if self._is_enabled and usage is not None and not usage.remaining:
            request.usage = usage
            raise TooManyRequests(TOO_MANY_SECRETS)
        try:
            yield
        except NotFound:
            self._count(request, name, WRONG_SECRETS, TOO_MANY_SECRETS)
            raise

    def set_limit_of_credential(self, request: Request, *, is_platform: bool) -> None:
        """Apply RATELIMIT_PLATFORM or RATELIMIT_DEFAULT to the bucket that counted the request."""
        rate = self._platform if is_platform else self._default
        if request.usage is not None and request.usage.rate != rate:
            request.usage = self.counts.set_rate(request.usage.name, rate)

    @staticmethod
    def add_headers(request: Request, response: Response) -> None:
        """Add the headers of the limit that counted this request last."""
        usage = request.usage
        if usage is None:
            return
        seconds = str(max(1, math.ceil(usage.ends_at - time.time())))
        counted, _, rest = usage.name.partition(":")
        policy = counted if rest else "credential"  # else address, scim, failed-authentication
        response.headers.add("RateLimit-Limit", str(usage.rate.amount))
        response.headers.add("RateLimit-Remaining", str(usage.remaining))
        response.headers.add("RateLimit-Reset", seconds)
        quota = f'"{policy}";q={usage.rate.amount};w={usage.rate.seconds}'
        response.headers.add("RateLimit-Policy", quota)
        response.headers.add("RateLimit", f'"{policy}";r={usage.remaining};t={seconds}')
        if response.status_code == 429:
            response.headers.add("Retry-After", seconds)

    def _count(self, request: Request, name: str, rate: Rate, refusal: str) -> None:
        if self._is_enabled:
            request.usage = self.counts.count(name, rate)
            if not request.usage.is_allowed:
                raise TooManyRequests(refusal)


def _credential_of(request: Request) -> str:
    # The case of ``Bearer``, and spaces around the credential, do not change the result.
    return request.headers.get("Authorization", "").partition(" ")[2].strip()


def _name_of(credential: str) -> str:
    return hashlib.sha256(credential.encode("utf-8", "replace")).hexdigest()[:32]


def rate_limits() -> RateLimits:
    limits: RateLimits = current_app.extensions[EXTENSION]
    return limits

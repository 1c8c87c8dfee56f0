"""Redis clients, all made here, so that none can hold a request for longer than configured."""

from __future__ import annotations

from functools import cache

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry


@cache
def request_client(url: str, timeout: float) -> Redis:
    """The client of requests: each call answers, or fails, within ``timeout`` seconds; no retry."""
    return Redis.from_url(
        url,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=Retry(NoBackoff(), 0),
        health_check_interval=0,
    )


def worker_client(url: str) -> Redis:
    """The client of a worker, whose calls wait for the next job."""
    keepalive = {} if url.startswith("unix://") else {"socket_keepalive": True}
    return Redis.from_url(url, socket_connect_timeout=5, **keepalive)

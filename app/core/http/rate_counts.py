"""Requests per bucket and fixed window, counted in each process and summed by Redis.

A window's number is epoch seconds // its length. Each process counts in memory, so a request never
waits for Redis. Every :data:`INTERVAL` one thread per process sends the changed totals to Redis and
reads the sums. In Redis a bucket's window is a hash; each process has a field of its own in it.
Totals are absolute, so a failed exchange can be repeated. Without Redis each process counts alone.

So a client can exceed the limit. With N processes, the interval I, the duration d of an exchange
and r requests per second, the excess is

- at most r * 2 * (I + d) + N, if the requests are spread over all processes;
- at most N * r * (I + d), if the client chooses the process of each request;
- never more than (N - 1) times the limit, also without Redis.

An evicted bucket that is used again gets a new field and counts from zero. The next exchange adds
the requests that it had sent before the eviction. Those that it had not sent are lost.
"""

from __future__ import annotations

import itertools
import logging
import os
import secrets
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import NamedTuple

from redis import Redis
from redis.exceptions import RedisError

from app.config_values import Rate

log = logging.getLogger(__name__)

INTERVAL = 0.5  # seconds between two exchanges
MAX_BUCKETS = 10_000  # per process, about 3 MB; a further one evicts the least recently used
BATCH = 1_000  # buckets in one call of the script, which takes Redis about 4 ms
KEY_PREFIX = "controlplane:ratelimit"

# For 500 buckets the script takes 2.5 ms of CPU in the process; a pipeline takes 16 ms.
EXCHANGE = """
local sums = {}
for i, key in ipairs(KEYS) do
  redis.call('HSET', key, ARGV[3 * i - 2], ARGV[3 * i - 1])
  redis.call('EXPIRE', key, ARGV[3 * i])
  local sum = 0
  for _, total in ipairs(redis.call('HVALS', key)) do
    sum = sum + total
  end
  sums[i] = sum
end
return sums
"""


class Usage(NamedTuple):
    """The state of a bucket's window, right after a request was admitted or refused."""

    name: str
    rate: Rate
    used: int
    ends_at: int  # epoch seconds
    is_allowed: bool

    @property
    def remaining(self) -> int:
        """The number of requests that the window still admits."""
        return max(0, self.rate.amount - self.used)


@dataclass(slots=True, eq=False)
class Bucket:
    """The counts of one bucket in its current window."""

    name: str
    rate: Rate
    field: str  # the field in Redis, which only this bucket of this process writes
    window: int = 0  # the number of the current window
    own: int = 0  # requests that this process admitted
    sent: int = 0  # the value of ``own`` that Redis has
    others: int = 0  # the sum of the other fields in Redis at the last exchange

    @property
    def key(self) -> str:
        """The Redis key of the current window's hash."""
        return f"{KEY_PREFIX}:{self.name}:{self.rate.seconds}:{self.window}"

    def turn(self, now: float) -> None:
        """Reset the counts if a new window has begun."""
        window = int(now) // self.rate.seconds
        if window != self.window:
            self.window = window
            self.own = self.sent = self.others = 0

    def usage(self, *, is_allowed: bool) -> Usage:
        ends_at = (self.window + 1) * self.rate.seconds
        return Usage(self.name, self.rate, self.own + self.others, ends_at, is_allowed)


class RateCounts:
    """The buckets of this process. Thread-safe; a forked process starts with no buckets."""

    def __init__(self, client: Redis, interval: float = INTERVAL) -> None:
        self._script = client.register_script(EXCHANGE)
        self._interval = interval
        self._start_empty()
        os.register_at_fork(after_in_child=self._start_empty)

    def _start_empty(self) -> None:
        self._process = secrets.token_hex(8)
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()
        self._thread: threading.Thread | None = None

    def count(self, name: str, rate: Rate) -> Usage:
        """Admit and count one request, or refuse it if the limit is reached.

        A new bucket gets ``rate``. An existing one keeps the rate it has (see :meth:`set_rate`).
        """
        now = time.time()
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(
                    target=self._exchange_forever, name="rate-counts", daemon=True
                )
                thread.start()
                self._thread = thread
            bucket = self._buckets.get(name)
            if bucket is None:
                field = f"{self._process}:{next(self._numbers)}"
                bucket = self._buckets[name] = Bucket(name, rate, field)
                if len(self._buckets) > MAX_BUCKETS:
                    self._buckets.popitem(last=False)
            else:
                self._buckets.move_to_end(name)
            bucket.turn(now)
            is_allowed = bucket.own + bucket.others < bucket.rate.amount
            if is_allowed:
                bucket.own += 1
            return bucket.usage(is_allowed=is_allowed)

    def set_rate(self, name: str, rate: Rate) -> Usage | None:
        """Change a bucket's rate and return its state; None if there is no such bucket.

        The counts remain, unless the length of the window changes.
        """
        with self._lock:
            bucket = self._buckets.get(name)
            if bucket is None:
                return None
            bucket.rate = rate
            bucket.turn(time.time())
            return bucket.usage(is_allowed=True)

    def exchange(self) -> None:
        """Send the totals that have changed and read the sums; raises RedisError.

        Buckets that were not used for a complete window are removed.
        """
        changed = iter(self._changed())
        while batch := list(itertools.islice(changed, BATCH)):
            # A key expires one window's length after its last update, so after its window's end.
            arguments = [
                value for _, sent in batch for value in (sent.field, sent.own, sent.rate.seconds)
            ]
            sums = self._script([sent.key for _, sent in batch], arguments)
            with self._lock:
                for (bucket, sent), total in zip(batch, sums, strict=True):
                    if bucket.key == sent.key:  # no new window has begun
                        bucket.sent = sent.own
                        bucket.others = total - sent.own

    def _changed(self) -> list[tuple[Bucket, Bucket]]:
        """The buckets whose totals have changed, each with a copy of its present values."""
        now = int(time.time())
        changed = []
        with self._lock:
            for name, bucket in list(self._buckets.items()):
                if now // bucket.rate.seconds > bucket.window + 1:
                    del self._buckets[name]
                elif bucket.own != bucket.sent:
                    changed.append((bucket, replace(bucket)))
        return changed

    def _exchange_forever(self) -> None:
        is_alone = False
        while True:
            time.sleep(self._interval)
            try:
                self.exchange()
                is_alone = False
            except RedisError as fault:
                if not is_alone:
                    log.warning("rate_limits_not_shared", extra={"reason": type(fault).__name__})
                is_alone = True
            except Exception:  # the thread must not end
                log.exception("rate_limit_exchange_failed")

"""Requests per bucket and fixed window, counted in each process and summed by Redis.

A window's number is epoch seconds // its length. Each process counts in memory, so a request never
waits for Redis. Every :data:`INTERVAL` one thread per process sends the changed totals to Redis and
reads the sums. In Redis a bucket's window is a hash with one field per bucket in a process. Totals
are absolute, so a failed exchange can be repeated. Without Redis each process counts alone.

Overshoot, for N processes, I the :data:`INTERVAL`, d the duration of an exchange and r requests per
second of one client:

- Requests spread over all processes: at most r * 2 * (I + d) + N beyond the limit.
- A client that chooses the process: at most N * r * (I + d) beyond the limit.
- In any case, and without Redis: at most (N - 1) times the limit.

An evicted bucket that is used again gets a new field and counts from zero. The next exchange adds
what the bucket had sent before; what it had not sent is lost.
"""

from __future__ import annotations

import itertools
import logging
import os
import secrets
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

from redis import Redis
from redis.exceptions import RedisError

from app.config_values import Rate

log = logging.getLogger(__name__)

INTERVAL = 0.5  # seconds between two exchanges
MAX_BUCKETS = 10_000  # per process, about 3 MB; beyond, the least recently used is evicted
BATCH = 1_000  # buckets in one call of the script, which then takes Redis about 4 ms
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
    """How far a bucket's window was used right after a request was admitted or refused."""

    name: str
    rate: Rate
    used: int
    ends_at: int  # epoch seconds
    is_allowed: bool

    @property
    def remaining(self) -> int:
        """Requests that the window still admits."""
        return max(0, self.rate.amount - self.used)


@dataclass(slots=True, eq=False)
class Bucket:
    """The counts of one bucket in its current window."""

    name: str
    rate: Rate
    field: str  # in Redis; no other bucket has it
    window: int = 0
    own: int = 0  # admitted by this bucket
    sent: int = 0  # the part of ``own`` that Redis knows
    others: int = 0  # admitted by the buckets of this name in other fields, as of the last exchange

    @property
    def key(self) -> str:
        """The key in Redis of the hash of its current window."""
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


class Snapshot(NamedTuple):
    """What an exchange sends of one bucket."""

    bucket: Bucket
    key: str  # of the hash in Redis
    seconds: int
    own: int


class RateCounts:
    """The buckets of this process. Safe for threads; a forked process starts with none."""

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
        """Count one request unless the limit is reached; refused requests are not counted.

        ``rate`` is that of a new bucket; a known one keeps its own (see :meth:`set_rate`).
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
        """Change a bucket's rate; None if the bucket was evicted.

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
        """Send the totals that have changed and learn the sums; raises RedisError.

        Buckets that were not used during a window are dropped.
        """
        changed = iter(self._changed())
        while batch := list(itertools.islice(changed, BATCH)):
            # A key expires one window length after its last update, so never before its window ends.
            arguments = [
                value for sent in batch for value in (sent.bucket.field, sent.own, sent.seconds)
            ]
            sums = self._script([sent.key for sent in batch], arguments)
            with self._lock:
                for sent, total in zip(batch, sums, strict=True):
                    if sent.bucket.key == sent.key:  # still in the window that was sent
                        sent.bucket.sent = sent.own
                        sent.bucket.others = total - sent.own

    def _changed(self) -> list[Snapshot]:
        now = int(time.time())
        changed = []
        with self._lock:
            for name, bucket in list(self._buckets.items()):
                seconds, window = bucket.rate.seconds, bucket.window
                if now // seconds > window + 1:
                    del self._buckets[name]
                elif bucket.own != bucket.sent:
                    changed.append(Snapshot(bucket, bucket.key, seconds, bucket.own))
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

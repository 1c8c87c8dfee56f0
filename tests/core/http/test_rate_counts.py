"""Counting in windows, alone and with others through a real Redis."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from app.config_values import Rate
from app.core.http import rate_counts
from app.core.http.rate_counts import BATCH, MAX_BUCKETS, RateCounts, Usage
from app.dev.engines.instance import Instance
from tests.running.serving import wait_until

MONTH = 30 * 86_400  # seconds; windows start at its multiples, so hardly ever during a test
NEVER = 3600.0  # seconds between exchanges of a counter whose exchanges are made by the test
NOWHERE = "unix:///nowhere/redis.sock?db=0"
NAME = "credential"
FIVE = Rate(5, MONTH)


def client_of(url: str, timeout: float = 5) -> Redis:
    return Redis.from_url(url, socket_timeout=timeout, retry=Retry(NoBackoff(), 0))


@pytest.fixture
def redis(instance: Instance) -> Iterator[Redis]:
    with client_of(instance.redis_url) as client:
        yield client
        client.flushdb()


@pytest.fixture
def counters(redis: Redis, instance: Instance) -> Callable[[int], list[RateCounts]]:
    """Several counters that share an empty Redis, as processes do."""
    redis.flushdb()
    return lambda number: [
        RateCounts(client_of(instance.redis_url), interval=NEVER) for _ in range(number)
    ]


@pytest.fixture
def alone() -> RateCounts:
    return RateCounts(client_of(NOWHERE), interval=NEVER)


def used(counts: RateCounts, times: int, rate: Rate = FIVE) -> Usage:
    """The usage after ``times`` requests."""
    return [counts.count(NAME, rate) for _ in range(times)][-1]


def wait_for_window(seconds: int) -> None:
    """Return just after a window has begun."""
    time.sleep(seconds - time.time() % seconds + 0.01)


class TestCount:
    def test_admits_as_many_as_the_rate_says(self, alone):
        usages = [alone.count(NAME, FIVE) for _ in range(7)]

        assert [usage.is_allowed for usage in usages] == [True] * 5 + [False] * 2
        assert [usage.remaining for usage in usages] == [4, 3, 2, 1, 0, 0, 0]

    def test_window_is_aligned_to_the_clock(self, alone):
        usage = used(alone, 1, Rate(5, 3600))

        assert usage.ends_at % 3600 == 0
        assert 0 < usage.ends_at - time.time() <= 3600

    def test_starts_from_zero_in_the_next_window(self, alone):
        wait_for_window(1)
        before = used(alone, 6, Rate(5, 1))
        wait_for_window(1)
        after = used(alone, 1, Rate(5, 1))

        assert not before.is_allowed
        assert after.is_allowed
        assert after.used == 1
        assert after.ends_at == before.ends_at + 1

    def test_is_exact_in_eight_threads_while_sums_are_exchanged(self, counters, redis):
        (counts,) = counters(1)
        rate = Rate(10_000, MONTH)
        admitted = []

        def work() -> None:
            admitted.append(sum(counts.count(NAME, rate).is_allowed for _ in range(2_000)))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            counts.exchange()
        counts.exchange()

        assert sum(admitted) == 10_000
        assert sums_in(redis) == [10_000]


class TestExchange:
    def test_tells_each_process_what_the_others_have_counted(self, counters):
        first, second = counters(2)
        used(first, 2)
        used(second, 1)
        first.exchange()
        second.exchange()

        assert used(second, 1).used == 4
        assert used(first, 1).used == 3  # nothing is known of the second until the next exchange
        first.exchange()
        assert used(first, 1).used == 5
        assert not used(first, 1).is_allowed

    def test_refused_requests_are_not_counted(self, counters, redis):
        (counts,) = counters(1)
        used(counts, 100)

        counts.exchange()

        assert sums_in(redis) == [5]

    def test_stores_no_longer_than_two_windows(self, counters, redis):
        (counts,) = counters(1)
        used(counts, 1, Rate(5, 60))

        counts.exchange()

        (key,) = redis.keys()
        assert key.startswith(b"controlplane:ratelimit:credential:60:")
        assert 0 < redis.ttl(key) <= 60

    def test_sends_many_buckets_in_batches(self, counters, redis):
        first, second = counters(2)
        names = [f"credential-{number}" for number in range(2 * BATCH + 1)]
        for name in names:
            first.count(name, FIVE)
            second.count(name, FIVE)

        first.exchange()
        second.exchange()

        assert len(redis.keys("*:credential-*")) == len(names)
        assert {second.count(name, FIVE).used for name in names} == {3}

    def test_is_made_by_one_thread_in_the_background(self, instance, redis):
        counts = [RateCounts(client_of(instance.redis_url), interval=0.05) for _ in range(2)]
        before = threading.active_count()
        for one in counts:
            used(one, 2)

        wait_until(lambda: sums_in(redis) == [4])

        assert threading.active_count() == before + 2


class TestRedisAway:
    @pytest.fixture
    def socket(self, instance: Instance, tmp_path: Path) -> Path:
        """Where Redis is reached; without the link it is away."""
        path = tmp_path / "redis.sock"
        path.symlink_to(instance.redis_socket)
        return path

    @pytest.fixture
    def client(self, socket: Path, redis: Redis) -> Redis:
        return client_of(f"unix://{socket}?db=0")

    def test_counts_are_sent_when_it_is_back(self, counters, client, socket, instance, redis):
        counts, (other,) = RateCounts(client, interval=NEVER), counters(1)
        used(counts, 1)
        used(other, 1)
        counts.exchange()
        socket.unlink()
        client.connection_pool.disconnect()
        used(counts, 2)
        for _ in range(3):
            with pytest.raises(RedisError):
                counts.exchange()
        used(counts, 1)
        socket.symlink_to(instance.redis_socket)

        counts.exchange()
        other.exchange()

        assert sums_in(redis) == [5]
        assert not used(other, 1).is_allowed

    def test_what_arrived_without_an_answer_is_not_counted_twice(self, instance, redis):
        counts = RateCounts(client_of(instance.redis_url, timeout=1), interval=NEVER)
        used(counts, 1)
        counts.exchange()
        used(counts, 2)
        server = redis.info()["process_id"]
        os.kill(server, signal.SIGSTOP)
        try:
            with pytest.raises(RedisError):
                counts.exchange()
        finally:
            os.kill(server, signal.SIGCONT)
        wait_until(lambda: sums_in(redis) == [3])

        counts.exchange()

        assert sums_in(redis) == [3]
        assert used(counts, 1).used == 4

    def test_thread_goes_on_and_says_so_once(self, client, socket, instance, redis, caplog):
        caplog.set_level("WARNING")  # another application of this process may have set another
        counts = RateCounts(client, interval=0.02)
        socket.unlink()
        used(counts, 1)
        wait_until(lambda: caplog.records)
        time.sleep(0.1)  # further attempts
        socket.symlink_to(instance.redis_socket)

        wait_until(lambda: sums_in(redis) == [1])

        assert [record.message for record in caplog.records] == ["rate_limits_not_shared"]

    def test_emptied_redis_gets_the_totals_again(self, counters, redis):
        (counts,) = counters(1)
        used(counts, 3)
        counts.exchange()
        redis.flushdb()
        redis.script_flush()
        used(counts, 1)

        counts.exchange()

        assert sums_in(redis) == [4]


class TestMemory:
    def test_least_recently_used_bucket_is_evicted(self, alone):
        used(alone, 5)
        alone.count("idle", FIVE)
        for number in range(MAX_BUCKETS - 1):
            alone.count(f"flood-{number}", FIVE)
            if number % 1000 == 0:
                alone.count(NAME, FIVE)

        assert not alone.count(NAME, FIVE).is_allowed
        assert alone.count("idle", FIVE).used == 1

    def test_what_an_evicted_bucket_has_sent_still_counts(self, counters, redis, monkeypatch):
        monkeypatch.setattr(rate_counts, "MAX_BUCKETS", 1)
        counts, other = counters(2)
        used(counts, 4)
        counts.exchange()
        counts.count("flood", FIVE)

        first = used(counts, 1)
        counts.exchange()
        second = used(counts, 1)
        used(other, 1)
        other.exchange()

        assert first.used == 1
        assert (second.used, second.is_allowed) == (5, False)
        assert sums_in(redis) == [6]
        assert not used(other, 1).is_allowed

    def test_bucket_is_dropped_when_it_was_not_used_for_a_window(self, counters):
        (counts,) = counters(1)
        wait_for_window(1)
        for name in (NAME, "used"):
            counts.count(name, Rate(1, 1))
            counts.set_rate(name, Rate(5, 1))
        wait_for_window(1)
        counts.count("used", Rate(1, 1))
        wait_for_window(1)

        counts.exchange()

        assert counts.count("used", Rate(1, 1)).rate == Rate(5, 1)
        assert counts.count(NAME, Rate(1, 1)).rate == Rate(1, 1)


class TestFork:
    def test_forked_process_counts_and_exchanges_for_itself(self, instance, redis):
        counts = RateCounts(client_of(instance.redis_url), interval=0.05)
        used(counts, 3)
        wait_until(lambda: sums_in(redis) == [3])

        child = os.fork()
        if child == 0:
            status = 1
            try:
                if used(counts, 1).used == 1:
                    wait_until(lambda: sums_in(client_of(instance.redis_url)) == [4])
                    status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)

        assert os.waitstatus_to_exitcode(status) == 0
        assert used(counts, 1).used == 4
        wait_until(lambda: counts.count(NAME, FIVE).used == 5)


def sums_in(redis: Redis) -> list[int]:
    """The sum of each bucket's window that Redis has."""
    return [sum(map(int, redis.hvals(key))) for key in redis.keys("controlplane:ratelimit:*")]

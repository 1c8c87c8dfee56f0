"""Metrics whose values are in Redis, because the processes that count them answer no ``/metrics``."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar, cast

from prometheus_client import Gauge
from redis import Redis
from redis.exceptions import RedisError

from app.core.jobs.queues import connection

log = logging.getLogger(__name__)


class SharedMetric:
    """The values of one metric, in a Redis hash. They restart at zero when Redis is emptied.

    A field of the hash has the values of ``labels``, separated by spaces. The fields in ``zeros``
    are 0 as long as nothing is stored. Define a metric in a module that web processes import.
    """

    all: ClassVar[list[SharedMetric]] = []

    def __init__(
        self, name: str, documentation: str, labels: Sequence[str], *, zeros: Collection[str] = ()
    ) -> None:
        self.key = f"metrics:{name}"
        self._zeros = dict.fromkeys(zeros, 0.0)
        # The web processes share the gauge too: without Redis it keeps its last values.
        self._gauge = Gauge(name, documentation, labels, multiprocess_mode="mostrecent")
        self.all.append(self)

    def add(self, counts: Mapping[str, int]) -> None:
        """Add to the values of these fields; without Redis nothing is stored."""
        with self._storing() as redis, redis.pipeline(transaction=False) as pipeline:
            for field, count in counts.items():
                pipeline.hincrby(self.key, field, count)
            pipeline.execute()

    def put(self, values: Mapping[str, float]) -> None:
        """Store the values of these fields; without Redis nothing is stored."""
        with self._storing() as redis:
            for field, value in values.items():
                redis.hset(self.key, field, value)

    def read(self) -> dict[str, float]:
        """The value of each field. Raises RedisError."""
        stored = cast("dict[bytes, bytes]", connection().hgetall(self.key))
        return self._zeros | {field.decode(): float(value) for field, value in stored.items()}

    def show(self) -> None:
        """Let ``/metrics`` show the present values. Raises RedisError."""
        for field, value in self.read().items():
            self._gauge.labels(*field.split()).set(value)

    @contextmanager
    def _storing(self) -> Iterator[Redis]:
        try:
            yield connection()
        except RedisError as fault:
            fields = {"metric": self.key, "reason": type(fault).__name__}
            log.warning("metric_not_stored", extra=fields)

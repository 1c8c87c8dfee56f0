"""Background jobs: the queues, the ``@job`` decorator, and pushing a job after the commit.

The arguments of a job are ids; all other data is in PostgreSQL. A periodic job queues lost jobs
again, so a failed push is only logged. A job may run twice, so running it twice must be harmless.
A service does not import jobs: it pushes ``JOBS[NAME]``, with a constant ``NAME`` in its module.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import Any

import rq
from redis import Redis
from redis.exceptions import RedisError
from rq.serializers import JSONSerializer

from app.config import current_config
from app.core.db import tenancy, transactions
from app.core.db.statements import Statement
from app.core.observability import telemetry
from app.core.observability.logs import current_request_id
from app.core.redis_clients import request_client

log = logging.getLogger(__name__)

PAUSE = 5  # seconds, shorter than ``every`` of any periodic job


class Queue(StrEnum):
    """All queues. A worker takes jobs from the first queue in this order that has any."""

    WEBHOOKS = "webhooks"
    MAILS = "mails"
    INDEXES = "indexes"
    IMPORTS = "imports"
    MAINTENANCE = "maintenance"


@dataclass(frozen=True)
class Job:
    """A function that a worker runs. :meth:`push` queues it; calling the Job runs it here."""

    function: Callable[..., object]
    queue: Queue
    timeout: int
    every: int | None

    @property
    def name(self) -> str:
        """The dotted name by which a worker imports the function."""
        return f"{self.function.__module__}.{self.function.__name__}"

    def __call__(self, *ids: str) -> object:
        return self.function(*ids)

    def push(self, *ids: str, delay: float = 0) -> None:
        """Queue the job after the current transaction's commit, or at once outside a transaction.

        ``delay``: seconds until a worker may run the job.
        """
        meta = {"request_id": current_request_id(), **telemetry.carried()}
        if transactions.is_open():
            transactions.on_commit(lambda: self._enqueue(ids, delay, meta))
        else:
            self._enqueue(ids, delay, meta)

    def push_periodically(self) -> bool:
        """Queue the job, unless a process has queued it in the last :data:`PAUSE` seconds.

        So several schedulers that run at the same time queue each periodic job once. Returns False
        if Redis does not answer.
        """
        try:
            self.push_once(PAUSE)
        except RedisError as fault:
            log.warning("job_push_failed", extra={"job": self.name, "reason": str(fault)})
            return False
        return True

    def push_once(self, seconds: int, *ids: str) -> None:
        """Queue the job, unless a process did so in the last ``seconds``. Raises RedisError."""
        if connection().set(self._pushed(ids), b"1", nx=True, ex=seconds):
            self.push(*ids)

    def push_stalled(self, stalled: Statement[Any]) -> None:
        """Queue the job for each row of :func:`app.core.db.stalled.take_stalled`, by its key."""
        with tenancy.platform_transaction():
            for key in stalled.all():
                self.push(*map(str, key))

    def forget_push(self, *ids: str) -> None:
        """Let the next :meth:`push_once` queue the job again; the job itself calls this."""
        with suppress(RedisError):
            connection().delete(self._pushed(ids))

    def _pushed(self, ids: tuple[str, ...]) -> str:
        return ":".join(("jobs:pushed", self.name, *ids))

    def _enqueue(self, ids: tuple[str, ...], delay: float, meta: dict[str, str]) -> None:
        queue = queue_named(self.queue, connection())
        enqueue = partial(queue.enqueue_in, timedelta(seconds=delay)) if delay else queue.enqueue
        try:
            enqueue(
                self.name,
                *ids,
                job_timeout=self.timeout,
                result_ttl=60,
                failure_ttl=86_400,
                meta=meta,
                description=self.name,
            )
        except RedisError as fault:
            log.warning("job_push_failed", extra={"job": self.name, "reason": str(fault)})
        except Exception:
            log.exception("job_push_failed", extra={"job": self.name})


@contextmanager
def logged_errors(event: str, **fields: str) -> Iterator[None]:
    """Log an error of the block as ``event``, and continue; only a job's time-out is raised."""
    try:
        yield
    except rq.timeouts.JobTimeoutException:
        raise
    except Exception:
        log.exception(event, extra=fields)


JOBS: dict[str, Job] = {}


def job(
    *, queue: Queue, timeout: int = 300, every: int | None = None
) -> Callable[[Callable[..., object]], Job]:
    """Register a function as a job; its arguments are ids, as text.

    ``timeout``: seconds for which the job may run. ``every``: seconds between two runs of a
    periodic job, which the scheduler queues; such a job has no arguments.
    """

    def register(function: Callable[..., object]) -> Job:
        made = Job(function, queue, timeout, every)
        JOBS[made.name] = made
        return made

    return register


def queue_named(name: str, connection: Redis) -> rq.Queue:
    """An RQ queue that serializes to JSON."""
    return rq.Queue(name, connection=connection, serializer=JSONSerializer)


def connection() -> Redis:
    """The current application's Redis client; its time-out is ``REDIS_TIMEOUT``."""
    config = current_config()
    return request_client(config.redis_url, config.redis_timeout)

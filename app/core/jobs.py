"""Work for later: queues, ``@job``, pushing after the commit, and the worker.

Redis is a doorbell: a job carries ids only, everything it needs is in PostgreSQL, and a lost push
is made good by a sweeper. So a push that fails is logged and nothing more, and every job is
harmless when it runs twice.
"""

from __future__ import annotations

import importlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

import rq
from flask import Flask, current_app
from redis import Redis
from redis.exceptions import RedisError
from rq.serializers import JSONSerializer
from sqlalchemy.orm import configure_mappers

from app.core import telemetry, transactions
from app.core.logging import add_facts, current_request_id, resume_request
from app.core.metrics import count_job
from app.core.redis import request_client, worker_client
from app.extensions import db

log = logging.getLogger(__name__)


class Queue(StrEnum):
    """Every queue; the Procfile's worker serves them in this order."""

    WEBHOOKS = "webhooks"
    INDEXES = "indexes"
    MAINTENANCE = "maintenance"


@dataclass(frozen=True)
class Job:
    """A function that a worker runs: call it to run it here, :meth:`push` it to run it later."""

    function: Callable[..., Any]
    queue: Queue
    timeout: int
    every: int | None

    @property
    def name(self) -> str:
        """The dotted name that the queue carries and the worker imports."""
        return f"{self.function.__module__}.{self.function.__name__}"

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)

    def push(self, *ids: str, delay: float = 0) -> None:
        """Queue the job once the current transaction is durable; at once outside a transaction.

        ``delay``: seconds until a worker may take it.
        """
        meta = {"request_id": current_request_id(), **telemetry.carried()}
        if transactions.is_open():
            transactions.on_commit(lambda: _push(self, ids, delay, meta))
        else:
            _push(self, ids, delay, meta)


JOBS: dict[str, Job] = {}


def job(
    *, queue: Queue, timeout: int = 300, every: int | None = None
) -> Callable[[Callable[..., Any]], Job]:
    """Make a function a job; its arguments are ids, as text.

    ``timeout``: seconds it may run. ``every``: seconds between runs by the scheduler, for jobs
    without arguments.
    """

    def register(function: Callable[..., Any]) -> Job:
        made = Job(function, queue, timeout, every)
        JOBS[made.name] = made
        return made

    return register


def queue_named(name: str, connection: Redis) -> rq.Queue:
    """An RQ queue with this program's serializer."""
    return rq.Queue(name, connection=connection, serializer=JSONSerializer)


def connection() -> Redis:
    """The request-side Redis client of the current application."""
    config = current_app.extensions["config"]
    return request_client(config.redis_url, config.redis_timeout)


def _push(pushed: Job, ids: tuple[str, ...], delay: float, meta: dict[str, str]) -> None:
    queue = queue_named(pushed.queue, connection())
    options: dict[str, Any] = {
        "job_timeout": pushed.timeout,
        "result_ttl": 60,
        "failure_ttl": 86_400,
        "meta": meta,
        "description": pushed.name,
    }
    try:
        if delay:
            queue.enqueue_in(timedelta(seconds=delay), pushed.name, *ids, **options)
        else:
            queue.enqueue(pushed.name, *ids, **options)
    except RedisError as fault:
        log.warning("job_push_failed", extra={"job": pushed.name, "reason": str(fault)})
    except Exception:
        log.exception("job_push_failed", extra={"job": pushed.name})


class Worker(rq.Worker):
    """RQ's worker with this application around each job and fresh database connections after a fork."""

    app: Flask

    def perform_job(self, job: rq.job.Job, queue: rq.Queue) -> bool:
        """Run one job in an application context of its own, under its request's id."""
        with self.app.app_context():
            db.engine.dispose(close=False)
            with telemetry.job_span(str(job.func_name), job.meta, queue=queue.name, job_id=job.id):
                succeeded = self._perform(job, queue)
            telemetry.flush()
            return succeeded

    def _perform(self, job: rq.job.Job, queue: rq.Queue) -> bool:
        _resume_request_of(job)
        started = time.perf_counter()
        succeeded = super().perform_job(job, queue)
        _resume_request_of(job)  # the job may have worked for other requests as well
        log.info(
            "job",
            extra={
                "queue": queue.name,
                "succeeded": succeeded,
                "duration_ms": round((time.perf_counter() - started) * 1000, 2),
            },
        )
        count_job(self.connection, str(job.func_name), succeeded=succeeded)
        return succeeded

    def handle_exception(self, job: rq.job.Job, *exc_info: Any) -> None:
        """Log what a job failed of, as everything is logged; RQ's own line would show its values."""
        log.error("job_failed", exc_info=exc_info)
        telemetry.note_failure(exc_info[1])


def _resume_request_of(job: rq.job.Job) -> None:
    resume_request(job.meta.get("request_id", ""))
    add_facts(job=str(job.func_name), job_id=job.id)


def make_worker(app: Flask, queues: list[Queue]) -> Worker:
    """A worker of ``queues``; it also moves delayed jobs to their queue when they are due."""
    configure_mappers()  # once, before the forks, not anew in each of them
    redis = worker_client(app.extensions["config"].redis_url)
    worker = Worker(
        [queue_named(name, redis) for name in queues],
        connection=redis,
        serializer=JSONSerializer,
        worker_ttl=30,
        maintenance_interval=10,
        job_monitoring_interval=5,
        log_job_description=False,
    )
    worker.app = app
    return worker


def run_scheduler(app: Flask, *, stop: Callable[[], bool]) -> None:
    """Push each job that has ``every`` when it is due, until ``stop()``.

    Several schedulers at once are harmless, since the jobs are.
    """
    due = {name: 0.0 for name, scheduled in JOBS.items() if scheduled.every}
    while not stop():
        now = time.monotonic()
        with app.app_context():
            for name in [name for name, moment in due.items() if moment <= now]:
                JOBS[name].push()
                due[name] = now + (JOBS[name].every or 0)
        time.sleep(0.5)


def load(modules: list[str]) -> None:
    """Import the modules that define jobs, so that :data:`JOBS` is complete."""
    for module in modules:
        importlib.import_module(module)

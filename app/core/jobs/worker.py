"""The RQ worker process: each job runs in its own application context."""

from __future__ import annotations

import logging
import time
from typing import Any

import rq
from flask import Flask
from redis import Redis
from redis.client import Pipeline
from rq.serializers import JSONSerializer

from app.core.jobs.queues import Queue, queue_named
from app.core.observability import telemetry
from app.core.observability.logs import add_facts, resume_request
from app.core.observability.metrics import JOB_RESULTS
from app.extensions import db

log = logging.getLogger(__name__)


class Worker(rq.Worker):
    """RQ's worker; each job has an application context and its own database connections."""

    app: Flask
    max_connection_wait_time = 5.0  # seconds between attempts to reach Redis; RQ waits up to 60

    def perform_job(self, job: rq.job.Job, queue: rq.Queue) -> bool:
        """Run one job; returns whether it succeeded. Log lines have the id of the job's request."""
        with self.app.app_context():
            db.engine.dispose(close=False)
            with telemetry.job_span(str(job.func_name), job.meta, queue=queue.name, job_id=job.id):
                _resume_request_of(job)
                started = time.perf_counter()
                succeeded = super().perform_job(job, queue)
                _resume_request_of(job)  # the job may have changed the logged request id
                milliseconds = round((time.perf_counter() - started) * 1000, 2)
                fields = {"queue": queue.name, "succeeded": succeeded, "duration_ms": milliseconds}
                log.info("job", extra=fields)
                JOB_RESULTS.add({f"{job.func_name} {'succeeded' if succeeded else 'failed'}": 1})
            telemetry.flush(self.app)
            return succeeded

    def heartbeat(self, timeout: int | None = None, pipeline: Pipeline | None = None) -> None:
        """Record that the worker is alive. Register it again if Redis has lost its entry."""
        if pipeline is None and not self.connection.hexists(self.key, "birth"):
            self.connection.delete(self.key)  # register_birth refuses a key that still exists
            self.register_birth()  # type: ignore[no-untyped-call]
            log.warning("worker_registered_again")
        super().heartbeat(timeout, pipeline)

    def handle_exception(self, job: rq.job.Job, *exc_info: Any) -> None:
        """Log the exception. RQ's own log line would contain the job's arguments."""
        log.error("job_failed", exc_info=exc_info)
        telemetry.note_failure(exc_info[1])


def _resume_request_of(job: rq.job.Job) -> None:
    resume_request(job.meta.get("request_id", ""))
    add_facts(job=str(job.func_name), job_id=job.id)


def make_worker(app: Flask, queues: list[Queue]) -> Worker:
    """A worker that serves ``queues``."""
    redis = Redis.from_url(app.extensions["config"].redis_url)  # RQ sets its time-out
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

"""The queues of jobs and the workers, as Redis knows them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from redis import Redis
from rq import Queue as RedisQueue
from rq.serializers import JSONSerializer
from rq.worker import BaseWorker, Worker

from app.core.clock import utcnow
from app.core.errors import Unavailable
from app.core.jobs.queues import Queue, queue_named

LATELY = timedelta(seconds=45)  # an idle worker shows every 15 seconds that it lives


class QueuesUnavailable(Unavailable):
    code = "queues_unavailable"
    detail = "Redis does not answer, so the queues are not known."


class QueueState(NamedTuple):
    """Numbers of jobs; ``workers`` that serve the queue; seconds that the first job has waited."""

    name: str
    workers: int
    waiting: int
    waiting_seconds: int
    delayed: int
    running: int
    failed: int


class WorkerState(NamedTuple):
    """A worker; ``job`` is what it works on. One that was killed is there for up to 45 seconds."""

    name: str
    queues: list[str]
    state: str
    job: str | None
    started_at: datetime | None
    last_seen_at: datetime | None


class Queues(NamedTuple):
    """All queues, in the order in which a worker serves them, and all workers."""

    queues: list[QueueState]
    workers: list[WorkerState]


def read_queues(redis: Redis) -> Queues:
    """The present state. Raises RedisError."""
    workers = live_workers(redis)
    served = [name for worker in workers for name in worker.queue_names()]
    return Queues(
        [_queue(queue_named(name, redis), served.count(name)) for name in Queue],
        [_worker(worker) for worker in workers],
    )


def live_workers(redis: Redis) -> list[BaseWorker]:
    """The workers that were seen lately. One that was killed is among them for up to 45 seconds."""
    known = Worker.all(connection=redis, serializer=JSONSerializer)
    since = utcnow() - LATELY
    return [one for one in known if one.last_heartbeat and one.last_heartbeat > since]


def _queue(queue: RedisQueue, workers: int) -> QueueState:
    return QueueState(
        name=queue.name,
        workers=workers,
        waiting=queue.count,
        waiting_seconds=_seconds_waited(queue),
        delayed=queue.scheduled_job_registry.count,
        running=queue.started_job_registry.count,
        failed=queue.failed_job_registry.count,
    )


def _worker(worker: BaseWorker) -> WorkerState:
    job = worker.get_current_job()
    return WorkerState(
        name=worker.name,
        queues=worker.queue_names(),
        state=str(worker.get_state()),
        job=job.description if job else None,
        started_at=worker.birth_date,
        last_seen_at=worker.last_heartbeat,
    )


def _seconds_waited(queue: RedisQueue) -> int:
    first = next(iter(queue.get_jobs(0, 1)), None)
    if first is None or first.enqueued_at is None:
        return 0
    return int((utcnow() - first.enqueued_at).total_seconds())

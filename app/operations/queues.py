"""The queues of jobs and the workers, as Redis knows them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from redis import Redis
from rq.job import Job
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
    return Queues(read_numbers(redis, workers), [_worker(worker) for worker in workers])


def read_numbers(redis: Redis, workers: list[BaseWorker]) -> list[QueueState]:
    """The numbers of each queue, in two round trips. Raises RedisError."""
    now, queues = utcnow(), [queue_named(name, redis) for name in Queue]
    with redis.pipeline(transaction=False) as pipeline:
        for queue in queues:
            pipeline.lrange(queue.key, 0, 0)
            pipeline.llen(queue.key)
            pipeline.zcard(queue.scheduled_job_registry.key)
            for registry in (queue.started_job_registry, queue.failed_job_registry):
                pipeline.zcount(registry.key, now.timestamp(), "inf")  # those that have not expired
        found = iter(pipeline.execute())
    numbers = dict(zip(queues, zip(*[found] * 5, strict=True), strict=True))
    firsts = [job.decode() for ids, *_ in numbers.values() for job in ids]
    jobs = Job.fetch_many(firsts, redis, JSONSerializer) if firsts else ()
    since = {job.origin: job.enqueued_at or now for job in jobs if job}
    served = [name for worker in workers for name in worker.queue_names()]
    return [
        QueueState(
            name=queue.name,
            workers=served.count(queue.name),
            waiting=waiting,
            waiting_seconds=int((now - since.get(queue.name, now)).total_seconds()),
            delayed=delayed,
            running=running,
            failed=failed,
        )
        for queue, (_, waiting, delayed, running, failed) in numbers.items()
    ]


def live_workers(redis: Redis) -> list[BaseWorker]:
    """The workers that were seen lately. One that was killed is among them for up to 45 seconds."""
    known = Worker.all(connection=redis, serializer=JSONSerializer)
    since = utcnow() - LATELY
    return [one for one in known if one.last_heartbeat and one.last_heartbeat > since]


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

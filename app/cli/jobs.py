"""``flask jobs``: run the worker and the scheduler, show the queues."""

from __future__ import annotations

import signal

import click
from flask import current_app

from app.cli.base import AppGroup, json_option, print_rows
from app.core.jobs.queues import JOBS, Queue, connection, queue_named
from app.core.jobs.scheduler import run_scheduler
from app.core.jobs.worker import make_worker

jobs = AppGroup("jobs", help="Run and inspect background work.")


@jobs.command("worker")
@click.option(
    "--queue",
    "queues",
    multiple=True,
    type=click.Choice([queue.value for queue in Queue]),
    help="Run jobs of this queue only; may be repeated. By default all queues, in this order.",
)
@click.option("--burst", is_flag=True, help="Exit when the queues are empty.")
def worker(queues: tuple[str, ...], burst: bool) -> None:
    """Run a worker until SIGTERM; it finishes the running job first.

    It first queues the periodic jobs, so that unfinished work continues immediately.
    """
    chosen = [Queue(name) for name in queues] or list(Queue)
    for known in JOBS.values():
        if known.every and known.queue in chosen:
            known.push()
    app = current_app._get_current_object()  # type: ignore[attr-defined]
    make_worker(app, chosen).work(burst=burst, with_scheduler=True, logging_level="WARNING")


@jobs.command("scheduler")
def scheduler() -> None:
    """Queue each periodic job when it is due, until SIGTERM."""
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    app = current_app._get_current_object()  # type: ignore[attr-defined]
    run_scheduler(app, stop=lambda: stopped)


@jobs.command("stats")
@json_option
def stats(as_json: bool) -> None:
    """Count the waiting, delayed, running and failed jobs of each queue."""
    redis = connection()
    rows = []
    for name in Queue:
        queue = queue_named(name, redis)
        rows.append(
            {
                "queue": name.value,
                "waiting": queue.count,
                "delayed": queue.scheduled_job_registry.count,
                "running": queue.started_job_registry.count,
                "failed": queue.failed_job_registry.count,
            }
        )
    print_rows(rows, ["queue", "waiting", "delayed", "running", "failed"], as_json=as_json)


@jobs.command("list")
@json_option
def list_jobs(as_json: bool) -> None:
    """List all jobs with their queue and their period."""
    rows = [
        {"job": name, "queue": known.queue.value, "every_seconds": known.every}
        for name, known in sorted(JOBS.items())
    ]
    print_rows(rows, ["job", "queue", "every_seconds"], as_json=as_json)

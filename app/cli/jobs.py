"""``flask jobs``: run the worker and the background process, show the queues."""

from __future__ import annotations

import logging
import signal
import threading

import click
from flask import Flask, current_app
from redis.exceptions import RedisError

from app.billing.reader import run_reader
from app.cli.base import json_option
from app.cli.generated import OperationGroup
from app.core.errors import first_line
from app.core.jobs.queues import JOBS, Queue
from app.core.jobs.worker import make_worker
from app.events.sequencer import run_sequencer
from app.log_streams.runner import run_log_streams
from app.operations.background import PARTS, run_parts
from app.operations.scheduler import run_scheduler
from app.surfaces.commands.output import print_rows
from app.webhooks.deliveries.sender import run_sender

log = logging.getLogger(__name__)
jobs = OperationGroup("jobs", help="Run and inspect background work.")

RUN = {
    "scheduler": run_scheduler,
    "sequencer": run_sequencer,
    "sender": run_sender,
    "log_streams": run_log_streams,
    "billing": run_reader,
}


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
    try:
        for known in JOBS.values():
            if known.every and known.queue in chosen:
                known.push_periodically()
        app = _logging_app()
        log.info("worker_started", extra={"queues": chosen})
        make_worker(app, chosen).work(burst=burst, with_scheduler=True, logging_level="WARNING")
    except RedisError as fault:
        raise click.ClickException(f"Redis: {first_line(fault)}") from None


@jobs.command("background")
def background() -> None:
    """Run all parts of the background process until SIGTERM.

    They are threads of one process: scheduler, sequencer, sender, log_streams, billing. One that
    fails starts again; the others continue.
    """
    _run(*PARTS)


@jobs.command("scheduler")
def scheduler() -> None:
    """Queue each periodic job when it is due, until SIGTERM."""
    _run("scheduler")


@jobs.command("sequencer")
def sequencer() -> None:
    """Give events their positions, until SIGTERM.

    Several sequencers take turns.
    """
    _run("sequencer")


@jobs.command("sender")
def sender() -> None:
    """Deliver events to webhook endpoints, until SIGTERM.

    Deliveries that have begun are finished.
    """
    _run("sender")


@jobs.command("log_streams")
def log_streams() -> None:
    """Write events to the targets of log streams, until SIGTERM.

    Batches that have begun are finished.
    """
    _run("log_streams")


@jobs.command("billing")
def billing() -> None:
    """Read from billing providers what changed, until SIGTERM.

    Events that have begun are finished.
    """
    _run("billing")


def _run(*parts: str) -> None:
    """Run the parts until SIGTERM or SIGINT."""
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    run_parts(_logging_app(), {part: RUN[part] for part in parts}, stopped=stopped)


def _logging_app() -> Flask:
    """The application, which logs at ``LOG_LEVEL`` from now on; other commands log errors only."""
    app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]
    logging.getLogger().setLevel(app.extensions["config"].log_level)
    return app


@jobs.command("list")
@json_option
def list_jobs(as_json: bool) -> None:
    """List all jobs with their queue and their period."""
    rows = [
        {"job": name, "queue": known.queue.value, "every_seconds": known.every}
        for name, known in sorted(JOBS.items())
    ]
    print_rows(rows, ["job", "queue", "every_seconds"], as_json=as_json)

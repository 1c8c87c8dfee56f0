"""``flask jobs``: run the worker and the background process, show the queues."""

from __future__ import annotations

import logging
import signal
import threading
from functools import partial

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
    "scheduler": (run_scheduler, "Queue each periodic job when it is due, until SIGTERM."),
    "sequencer": (run_sequencer, "Give events their positions, until SIGTERM."),
    "sender": (run_sender, "Deliver events to webhook endpoints, until SIGTERM."),
    "log_streams": (run_log_streams, "Write events to the targets of log streams, until SIGTERM."),
    "billing": (run_reader, "Read from billing providers what changed, until SIGTERM."),
}
"""The parts of the background process: what runs each, and its command's help."""


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
    fails starts again; the others continue. What has begun is finished.
    """
    _run(*PARTS)


def _run(*parts: str) -> None:
    """Run the parts until SIGTERM or SIGINT."""
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    run_parts(_logging_app(), {part: RUN[part][0] for part in parts}, stopped=stopped)


for _part, (_, _help) in RUN.items():
    jobs.command(_part, help=_help)(partial(_run, _part))


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

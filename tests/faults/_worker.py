"""A worker, a scheduler, a sequencer or a sender in a process of its own, started in no time by a fork server.

The same as those of ``flask jobs``; only the imports are done beforehand.
"""

from __future__ import annotations

import gc
import multiprocessing
from collections.abc import Mapping, Sequence
from importlib import import_module
from multiprocessing.context import ForkServerProcess

from app import create_app, import_each
from app.core.jobs.queues import Queue
from app.core.jobs.scheduler import run_scheduler
from app.core.jobs.worker import make_worker
from app.events.sequencer import run_sequencer
from app.webhook_deliveries import work
from app.webhook_deliveries.sender import run_sender

import_each("routes")
import_each("jobs")
import_module("app.cli")
gc.freeze()  # the processes need not look at it

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload([__name__])


def start(
    environment: Mapping[str, str], queues: Sequence[Queue] = (Queue.INDEXES,)
) -> ForkServerProcess:
    """Start a worker of these queues."""
    process = context.Process(target=_work, args=(dict(environment), list(queues)))
    process.start()
    return process


def start_scheduler(environment: Mapping[str, str]) -> ForkServerProcess:
    """Start a scheduler."""
    process = context.Process(target=_schedule, args=(dict(environment),))
    process.start()
    return process


def start_sequencer(environment: Mapping[str, str]) -> ForkServerProcess:
    """Start a sequencer."""
    process = context.Process(target=_sequence, args=(dict(environment),))
    process.start()
    return process


def start_sender(environment: Mapping[str, str], *, lease: int) -> ForkServerProcess:
    """Start a sender whose deliveries are claimed again ``lease`` seconds after it was killed."""
    process = context.Process(target=_send, args=(dict(environment), lease))
    process.start()
    return process


def _send(environment: Mapping[str, str], lease: int) -> None:
    work.LEASE = lease
    run_sender(create_app(environment), stop=lambda: False)


def _schedule(environment: Mapping[str, str]) -> None:
    run_scheduler(create_app(environment), stop=lambda: False)


def _sequence(environment: Mapping[str, str]) -> None:
    run_sequencer(create_app(environment), stop=lambda: False)


def _work(environment: Mapping[str, str], queues: list[Queue]) -> None:
    worker = make_worker(create_app(environment), queues)
    worker.work(with_scheduler=True, logging_level="ERROR")

"""A worker, or a part of the background process, in a process of its own, started in no time by a fork server.

The same as those of ``flask jobs``; only the imports are done beforehand.
"""

import gc
import multiprocessing
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from multiprocessing.context import ForkServerProcess
from typing import Any

import psutil

from app import create_app, import_each
from app.billing import reader
from app.billing.reader import run_reader
from app.core.jobs.queues import Queue
from app.core.jobs.worker import make_worker
from app.events.sequencer import run_sequencer
from app.log_streams import work as log_streams
from app.log_streams.kinds import KINDS
from app.log_streams.kinds.kind import Limits
from app.log_streams.runner import run_log_streams
from app.operations.scheduler import run_scheduler
from app.webhooks.deliveries import work
from app.webhooks.deliveries.sender import run_sender

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
    return _start(_work, environment, list(queues))


def start_scheduler(environment: Mapping[str, str]) -> ForkServerProcess:
    """Start a scheduler."""
    return _start(_schedule, environment)


def start_sequencer(environment: Mapping[str, str]) -> ForkServerProcess:
    """Start a sequencer."""
    return _start(_sequence, environment)


def start_sender(environment: Mapping[str, str], *, lease: int) -> ForkServerProcess:
    """Start a sender whose deliveries are claimed again ``lease`` seconds after it was killed."""
    return _start(_send, environment, lease)


def start_reader(environment: Mapping[str, str], *, lease: int) -> ForkServerProcess:
    """Start a reader whose events are read again ``lease`` seconds after it was killed."""
    return _start(_read, environment, lease)


def start_log_streams(environment: Mapping[str, str], *, lease: int) -> ForkServerProcess:
    """Start a writer of log streams with small batches and short waits."""
    return _start(_write_log_streams, environment, lease)


def kill(process: ForkServerProcess) -> None:
    """SIGKILL to a process and to its children, such as the one of a worker's job."""
    with suppress(psutil.NoSuchProcess):
        found = psutil.Process(process.pid)
        for one in (found, *found.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                one.kill()
    process.join()


def kill_at_random(worker: psutil.Process, *, job: float = 0.7) -> None:
    """SIGKILL to a worker, and with the probability ``job`` to each process of its jobs."""
    with suppress(psutil.NoSuchProcess):
        children = worker.children(recursive=True)
        worker.kill()
        for child in children:
            if random.random() < job:
                with suppress(psutil.NoSuchProcess):
                    child.kill()


def _start(
    target: Callable[..., None], environment: Mapping[str, str], *args: Any
) -> ForkServerProcess:
    process = context.Process(target=target, args=(dict(environment), *args))
    process.start()
    return process


def _send(environment: Mapping[str, str], lease: int) -> None:
    work.LEASE = lease
    run_sender(create_app(environment), stop=lambda: False)


def _write_log_streams(environment: Mapping[str, str], lease: int) -> None:
    log_streams.LEASE, log_streams.SHORTEST_WAIT, log_streams.LONGEST_WAIT = lease, 0.2, 2.0
    for name, kind in KINDS.items():
        KINDS[name] = kind._replace(limits=Limits(size=256 * 1024, seconds=0.5))
    run_log_streams(create_app(environment), stop=lambda: False)


def _read(environment: Mapping[str, str], lease: int) -> None:
    reader.LEASE_SECONDS = lease
    run_reader(create_app(environment), stop=lambda: False)


def _schedule(environment: Mapping[str, str]) -> None:
    run_scheduler(create_app(environment), stop=lambda: False)


def _sequence(environment: Mapping[str, str]) -> None:
    run_sequencer(create_app(environment), stop=lambda: False)


def _work(environment: Mapping[str, str], queues: list[Queue]) -> None:
    worker = make_worker(create_app(environment), queues)
    worker.work(with_scheduler=True, logging_level="ERROR")

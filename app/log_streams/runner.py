"""The writer of log streams: a thread for each batch, so that a dead target delays no other.

Any number of processes may run it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from flask import Flask

from app.core.db.transactions import DATABASE_FAULTS, RowChanged
from app.log_streams import work
from app.log_streams.kinds.kind import Failed

log = logging.getLogger(__name__)

THREADS = 32  # batches at a time
INTERVAL = 1.0  # seconds between two looks at the database; the end of a batch ends the wait
FAULTS = (*DATABASE_FAULTS, RowChanged)
DATABASE = threading.Lock()  # one thread at a time works with it, by one connection


def run_log_streams(app: Flask, *, stop: Callable[[], bool]) -> None:
    """Write the streams that are due until ``stop()``; the batches that have begun are finished."""
    running: set[Future[None]] = set()
    with ThreadPoolExecutor(THREADS, thread_name_prefix="log_stream") as threads:
        while not stop():
            for one in claim(app, THREADS - len(running)):
                running.add(threads.submit(write, app, one))
            if running:
                running = wait(running, INTERVAL, FIRST_COMPLETED).not_done
            else:
                time.sleep(INTERVAL)


def claim(app: Flask, most: int = THREADS) -> list[work.Claim]:
    """Claim streams that are due; none after a fault of PostgreSQL."""
    try:
        with app.app_context(), DATABASE:
            return work.claim(most)
    except FAULTS as fault:
        log.warning("log_streams_failed", extra={"reason": type(fault).__name__})
        return []


def write(app: Flask, one: work.Claim) -> None:
    """Write the next batch of a stream, and store the result. No error is raised."""
    try:
        with app.app_context():
            _write(one)
    except FAULTS as fault:  # another attempt follows when the lease is over
        log.warning("log_stream_not_stored", extra={"reason": type(fault).__name__})


def _write(one: work.Claim) -> None:
    result: dict[str, object] | Failed
    fields = {"stream_id": str(one.stream_id)}
    try:
        with DATABASE:
            found = work.load(one)
        if found is None:
            return
        deliver, result = found
        deliver()
    except Failed as fault:
        result = fault
        log.info("log_stream_batch_failed", extra={**fields, "reason": str(fault)})
    except FAULTS:
        raise
    except Exception as fault:
        log.exception("log_stream_failed", extra=fields)
        result = Failed(f"The service has failed: {type(fault).__name__}.")
    with DATABASE:
        work.store(one, result)

"""The writer of log streams: a thread for each batch, so that a dead target delays no other.

One thread at a time works with the database. Any number of processes may run it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg2
from flask import Flask
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.core.db.transactions import RowChanged
from app.log_streams import work
from app.log_streams.kinds.kind import Refused, Unavailable

log = logging.getLogger(__name__)

THREADS = 32  # batches at a time
FAILING = THREADS // 2  # of these, the most of streams whose last attempt failed
INTERVAL = 1.0  # seconds between two looks at the database; the end of a batch ends the wait
PAUSE = 1.0  # seconds, after a fault of PostgreSQL
FAULTS = (psycopg2.Error, PoolTimeout, RowChanged)


def run_log_streams(app: Flask, *, stop: Callable[[], bool]) -> None:
    """Write the streams that are due until ``stop()``; the batches that have begun are finished."""
    writer = Writer(app)
    with ThreadPoolExecutor(THREADS, thread_name_prefix="log_stream") as threads:
        while not stop():
            for are_failing, one in writer.claim():
                threads.submit(writer.write, one, are_failing=are_failing)
            writer.wait()


class Writer:
    """The batches that are being written: ``running`` of each class, healthy and failing."""

    def __init__(self, app: Flask) -> None:
        self._service = app
        self._database = threading.Lock()
        self._woken = threading.Event()
        self._running = {False: 0, True: 0}

    def claim(self) -> list[tuple[bool, work.Claim]]:
        """Claim as many streams as there are threads for, each with whether it is failing."""
        found: list[tuple[bool, work.Claim]] = []
        try:
            for are_failing, most in ((False, THREADS), (True, FAILING)):
                free = min(most - self._running[are_failing], THREADS - sum(self._running.values()))
                if free <= 0:
                    continue
                with self._service.app_context(), self._database:
                    claimed = work.claim(free, are_failing=are_failing)
                self._count(are_failing, len(claimed))
                found += [(are_failing, one) for one in claimed]
        except FAULTS as fault:
            log.warning("log_streams_failed", extra={"reason": type(fault).__name__})
            time.sleep(PAUSE)
        return found

    def write(self, one: work.Claim, *, are_failing: bool) -> None:
        """Write the next batch of a stream, and store what came of it. No error is raised."""
        try:
            with self._service.app_context():
                self._write(one)
        except FAULTS as fault:  # another attempt follows when the lease is over
            log.warning("log_stream_not_stored", extra={"reason": type(fault).__name__})
        finally:
            self._count(are_failing, -1)
            self._woken.set()

    def _write(self, one: work.Claim) -> None:
        result: dict[str, object] | Refused | Unavailable
        try:
            with self._database:
                found = work.load(one)
            if found is None:
                return
            found.deliver()
            result = found.values
        except (Refused, Unavailable) as fault:
            result = fault
            fields = {"stream_id": str(one.stream_id), "reason": str(fault)}
            log.info("log_stream_batch_failed", extra=fields)
        except FAULTS:
            raise
        except Exception as fault:
            log.exception("log_stream_failed", extra={"stream_id": str(one.stream_id)})
            result = Unavailable(f"The service has failed: {type(fault).__name__}.")
        with self._database:
            work.store(one, result)

    def _count(self, are_failing: bool, number: int) -> None:
        with self._database:
            self._running[are_failing] += number

    def wait(self) -> None:
        """Wait for the end of a batch, at most :data:`INTERVAL`."""
        self._woken.wait(INTERVAL)
        self._woken.clear()

"""The sequencer: gives events their positions soon after their commit."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from flask import Flask

from app.audit.service import OUTBOX
from app.core.db.transactions import DATABASE_FAULTS
from app.core.jobs.signals import Signal, listening
from app.events import positions

log = logging.getLogger(__name__)

INTERVAL = 0.1  # seconds between two looks at the outbox; a message through Redis ends the wait
PAUSE = 1.0  # seconds, after a fault of PostgreSQL
DELIVERIES = Signal("webhooks:due")  # deliveries to webhook endpoints are due
SEQUENCED = Signal("events:sequenced")  # events have positions; streams read them
FEW = 10  # events in the first transaction after a fault


def run_sequencer(app: Flask, *, stop: Callable[[], bool]) -> None:
    """Move events from the outbox to their positions, until ``stop()``.

    One sequencer works at a time. When it ends, another continues.
    """
    woken = threading.Event()
    limit = positions.BATCH
    with listening(app, OUTBOX, woken.set):
        while not stop():
            woken.clear()
            try:
                with app.app_context():
                    moved = positions.sequence(limit)
                    if moved:
                        DELIVERIES.notify()
                        SEQUENCED.notify()
            except DATABASE_FAULTS as fault:
                log.warning("sequencer_failed", extra={"reason": type(fault).__name__})
                limit = FEW  # so many are moved in time, however large they are
                time.sleep(PAUSE)
                continue
            if moved < limit:
                woken.wait(INTERVAL)
            limit = positions.BATCH

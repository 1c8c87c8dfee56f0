"""The background process: threads that each do one kind of work until SIGTERM."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from flask import Flask

from app.core.observability.metrics import SharedMetric

log = logging.getLogger(__name__)

Part = Callable[..., None]
PARTS = ("scheduler", "sequencer", "sender", "log_streams", "billing")
SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds until a part that has ended starts again
SEEN_EVERY = 10.0  # seconds between two writes of LAST_SEEN
LAST_SEEN = SharedMetric(
    "process_last_seen",
    "Time at which a process of this kind was last seen, in seconds since 1970; 0 for never.",
    ["process"],
    zeros=PARTS,
)


def run_parts(app: Flask, parts: Mapping[str, Part], *, stopped: threading.Event) -> None:
    """Run each part in a thread of its own, as ``part(app, stop=…)``, until ``stopped`` is set.

    A part must call ``stop()`` often and return when it is True. ``stop()`` also writes the time to
    :data:`LAST_SEEN`. A part that fails or returns earlier is started again. The pause doubles each
    time, up to :data:`LONGEST_PAUSE`, and is short again after the part has run longer than that.
    """
    with ThreadPoolExecutor(len(parts)) as threads:
        for name, part in parts.items():
            threads.submit(_keep_running, app, name, part, stopped)


def _keep_running(app: Flask, name: str, part: Part, stopped: threading.Event) -> None:
    pause, due = SHORTEST_PAUSE, 0.0

    def stop() -> bool:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + SEEN_EVERY
            with app.app_context():
                LAST_SEEN.put({name: time.time()})
        return stopped.is_set()

    while not stopped.is_set():
        log.info("background_started", extra={"part": name})
        started = time.monotonic()
        try:
            part(app, stop=stop)
        except Exception:
            log.exception("background_failed", extra={"part": name})
        if time.monotonic() - started > LONGEST_PAUSE:
            pause = SHORTEST_PAUSE
        stopped.wait(pause)
        pause = min(2 * pause, LONGEST_PAUSE)

"""The background process: threads that each do one kind of work until SIGTERM."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from flask import Flask

log = logging.getLogger(__name__)

SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds until a part that has failed starts again


def run_parts(
    app: Flask, parts: Mapping[str, Callable[..., None]], *, stopped: threading.Event
) -> None:
    """Call each part with ``app`` and ``stop=``, in a thread of its own, until all have ended.

    A part that fails before ``stopped`` starts again, after a pause that doubles each time.
    """
    threads = [
        threading.Thread(target=_keep_running, args=(app, name, part, stopped), name=name)
        for name, part in parts.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _keep_running(
    app: Flask, name: str, part: Callable[..., None], stopped: threading.Event
) -> None:
    pause = SHORTEST_PAUSE
    while not stopped.is_set():
        log.info("background_started", extra={"part": name})
        started = time.monotonic()
        try:
            part(app, stop=stopped.is_set)
        except Exception:
            log.exception("background_failed", extra={"part": name})
        if time.monotonic() - started > LONGEST_PAUSE:
            pause = SHORTEST_PAUSE
        stopped.wait(pause)
        pause = min(2 * pause, LONGEST_PAUSE)

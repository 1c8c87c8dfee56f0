"""Pairs of clients post the same signed events while the worker is killed every second, Redis is away and
comes back empty, and PostgreSQL is restarted: every event is acknowledged in the end, and applied exactly
once. Until then it was answered 503; nothing else was answered.
"""

import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from flask import Flask

from app.core.jobs.queues import Queue
from app.extensions import db
from app.inbox.jobs import process_events
from tests.faults import _worker
from tests.faults._engines import PrivateEngines, private_engines
from tests.faults._load import SETTINGS, Load, check_effects, wait_for_effects
from tests.ports import free_port
from tests.running.serving import HOST, answers, running, wait_until

PAIRS = 2


@dataclass
class Report:
    accepted: int = 0
    refused: int = 0
    kills: int = 0
    postgres_restarts: int = 0
    redis_outages: int = 0
    seconds: float = 0


def prove(
    app: Flask,
    environment: Mapping[str, str],
    *,
    events: int = 10_000,
    redis_away: float = 20,
    postgres_restarts: int = 2,
    sweeping: bool = True,
) -> Report:
    """Post at least so many events, break, wait, and count; AssertionError where anything is wrong.

    It runs on engines of its own, which ``app`` does not use. What is left at the end waits for
    the sweeper, or with ``sweeping`` false for a job that is pushed at once.
    """
    report, started = Report(), time.monotonic()
    with private_engines(**SETTINGS, WEB_PROCESSES="2") as found, _served(found) as url:
        load = Load(url)
        with _worker_at_all_times(found.environment, report) as killing:
            with load.run({}, posters=PAIRS, together=2):
                _break(found, load, report, 2 * events, redis_away, postgres_restarts)
            killing.clear()
            with found.app.app_context():
                db.engine.dispose()  # a restart has cut its connections
                if not sweeping:
                    process_events.push()
            wait_for_effects(load)
        check_effects(load)
    report.accepted, report.refused = len(load.receipts), len(load.refusals)
    report.seconds = time.monotonic() - started
    return report


def _break(
    found: PrivateEngines,
    load: Load,
    report: Report,
    successes: int,
    redis_away: float,
    postgres_restarts: int,
) -> None:
    """PostgreSQL restarts first, Redis goes away and comes back empty, PostgreSQL restarts again."""
    load.wait_for(int(0.15 * successes))
    for number in range(postgres_restarts):
        found.restart_postgres()
        report.postgres_restarts += 1
        load.wait_for(len(load.successes) + int(0.15 * successes))
        if number == 0:
            redis = found.engines.redis
            redis.stop()
            for path in redis.data.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            time.sleep(redis_away)
            redis.start()
            report.redis_outages += 1
            load.wait_for(int(0.75 * successes))
    load.wait_for(successes)


@contextmanager
def _worker_at_all_times(
    environment: Mapping[str, str], report: Report
) -> Iterator[threading.Event]:
    """While the event is set, each worker lives for a second."""
    done, killing = threading.Event(), threading.Event()
    killing.set()

    def start() -> psutil.Process:
        return psutil.Process(_worker.start(environment, list(Queue)).pid)

    def keep(process: psutil.Process) -> None:
        while not done.is_set():
            done.wait(1)
            while not killing.is_set() and process.is_running() and not done.is_set():
                done.wait(0.2)
            _worker.kill_at_random(process)
            report.kills += killing.is_set()
            process = start()
        _worker.kill_at_random(process, job=1)

    thread = threading.Thread(target=keep, args=[start()])
    thread.start()
    try:
        yield killing
    finally:
        done.set()
        thread.join()


@contextmanager
def _served(found: PrivateEngines) -> Iterator[str]:
    """Two web processes and a scheduler."""
    folder, port = Path(found.environment["INSTANCE_DIR"]), free_port()
    commands = {
        "web": ["gunicorn", "wsgi:app", f"--bind={HOST}:{port}"],
        "scheduler": ["flask", "--app", "wsgi", "jobs", "scheduler"],
    }
    web, scheduler = (
        running(
            [sys.executable, "-m", *command], environ=found.environment, log=folder / f"{name}.log"
        )
        for name, command in commands.items()
    )
    with web, scheduler:
        wait_until(lambda: answers(port, "/healthz") == 200)
        yield f"http://{HOST}:{port}"

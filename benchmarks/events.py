"""``python -m benchmarks events``: what the event feed costs, and how late it is.

The cost is the processor time of a PATCH of a subscription with its event, and without one: then no
action is an event. Both are Python's and PostgreSQL's, in rounds that take turns; the median of the
rounds' ratios is printed. The delay is from the answer of a PATCH to its event at a reader who
waits.
"""

from __future__ import annotations

import contextlib
import io
import statistics
import threading
import time
from pathlib import Path

import psutil
from flask.testing import FlaskClient

from app import create_app
from app.audit import outbox
from app.events import positions
from benchmarks import deliveries
from benchmarks.calls import CASES, WARM_UP, credential, patch
from benchmarks.deliveries import process
from benchmarks.stage import Stage

REQUESTS = 60  # of a round
PER_SECOND = 50


def report(stage: Stage, *, rounds: int, seconds: int) -> str:
    """All figures, as text."""
    with contextlib.redirect_stderr(io.StringIO()):  # the log
        client = create_app(stage.environment).test_client()
        cost = _cost(stage, client, rounds)
        delays = _delays(stage, client, seconds)
        delivered = deliveries.report(stage, client, seconds)
    return f"{cost}\n{delays}\n{delivered}"


def _cost(stage: Stage, client: FlaskClient, rounds: int) -> str:
    with_event, ratios = [], []
    _round(stage, client, WARM_UP)
    for number in range(rounds):
        if number % 2:
            more, less = _round(stage, client), _without_events(stage, client)
        else:
            less, more = _without_events(stage, client), _round(stage, client)
        with_event.append(more)
        ratios.append(more / less - 1)
    middle = statistics.median(ratios)
    return (
        f"A PATCH takes {statistics.median(with_event) * 1000:.2f} ms of processor time, {middle:+.1%}"
        f" by its event (median of {rounds} rounds, {min(ratios):+.1%} to {max(ratios):+.1%})."
    )


def _without_events(stage: Stage, client: FlaskClient) -> float:
    types = dict(outbox.EVENT_TYPES)
    outbox.EVENT_TYPES.clear()
    try:
        return _round(stage, client)
    finally:
        outbox.EVENT_TYPES.update(types)


def _round(stage: Stage, client: FlaskClient, requests: int = REQUESTS) -> float:
    """Seconds of processor time for each request, of this process and of PostgreSQL's sessions."""
    _, subject, field, _ = CASES[0]
    headers = credential(stage, subject)
    before = spent(stage)
    for _ in range(requests):
        patch(client, headers, {field: f"City {time.monotonic_ns()}"})
    return (spent(stage) - before) / requests


def spent(stage: Stage) -> float:
    """Seconds of processor time of this process and of PostgreSQL's sessions until now."""
    sessions = psutil.Process(stage.postmaster()).children()
    names = [(one, " ".join(one.cmdline())) for one in sessions]
    ours = [one.pid for one, name in names if "controlplane_app" in name]
    files = [Path(f"/proc/{pid}/schedstat") for pid in ours]  # nanoseconds
    return time.process_time() + sum(int(file.read_text().split()[0]) for file in files) / 1e9


def _delays(stage: Stage, client: FlaskClient, seconds: int) -> str:
    _, subject, field, _ = CASES[0]
    headers = credential(stage, subject)
    changed: dict[str, float] = {}
    came: dict[str, float] = {}
    count = seconds * PER_SECOND
    with process(stage, "sequencer"):
        cursor = _first_cursor(client, headers, field)
        reader = threading.Thread(target=_read, args=(client, headers, cursor, field, count, came))
        reader.start()
        started = time.monotonic()
        for number in range(count):
            time.sleep(max(0.0, started + number / PER_SECOND - time.monotonic()))
            city = f"City {number} {started}"
            patch(client, headers, {field: city})
            changed[city] = time.monotonic()
        reader.join()
    delays = sorted(max(0.0, came[city] - moment) * 1000 for city, moment in changed.items())
    return (
        f"At {PER_SECOND} changes a second, events reach a reader after {delays[count // 2]:.0f} ms"
        f" (p50) and {delays[int(count * 0.99)]:.0f} ms (p99)."
    )


def _first_cursor(client: FlaskClient, headers: dict[str, str], field: str) -> str:
    """The end of the feed, once the sequencer has come to a change of now."""
    with client.application.app_context():
        while positions.sequence():
            pass
    end = client.get("/v1/events?types=plan.*", headers=headers).get_json()["next_cursor"]
    patch(client, headers, {field: f"City {time.monotonic_ns()}"})
    while True:
        page = client.get(f"/v1/events?after={end}", headers=headers).get_json()
        if page["data"]:
            return str(page["next_cursor"])
        time.sleep(0.1)


def _read(
    client: FlaskClient,
    headers: dict[str, str],
    cursor: str,
    field: str,
    count: int,
    came: dict[str, float],
) -> None:
    while len(came) < count:
        query = {"after": cursor, "wait": 20, "limit": 1000}
        page = client.get("/v1/events", headers=headers, query_string=query).get_json()
        now = time.monotonic()
        came.update({event["data"][field]: now for event in page["data"]})
        cursor = page["next_cursor"]

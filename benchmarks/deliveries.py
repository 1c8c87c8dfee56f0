"""The deliveries part of ``python -m benchmarks events``: how late they are, and how many a second.

The delay is from the answer of a PATCH to the arrival of its event at a local receiver. A receiver,
a sequencer and a sender run in processes of their own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from urllib.request import urlopen

from flask.testing import FlaskClient

from benchmarks.calls import CASES, credential, patch
from benchmarks.stage import PROJECT, Stage

ENDPOINTS = 3
MANY_ENDPOINTS = 20  # of which one is dead
PER_SECOND = 50
PER_SECOND_TO_MANY = 10
BACKLOG = 1_000  # changes
PATIENCE = 120  # seconds
_, SUBJECT, FIELD, _ = CASES[0]


def report(stage: Stage, client: FlaskClient, seconds: int) -> str:
    """The three figures, as text."""
    headers = credential(stage, SUBJECT)

    def change(city: str) -> None:
        patch(client, headers, {FIELD: city})

    with process(stage, "sequencer"):
        with receiver(client, headers, ENDPOINTS) as ports, process(stage, "sender"):
            p50, p99 = _delays(change, ports, PER_SECOND, seconds)
        with receiver(client, headers, ENDPOINTS) as ports:
            rate = _rate(stage, change, ports)
        alive, beside_dead = (
            _to_many(stage, client, headers, change, seconds, dead=dead) for dead in (False, True)
        )
    return (
        f"At {PER_SECOND} changes a second, deliveries reach {ENDPOINTS} endpoints after {p50:.0f} ms"
        f" (p50) and {p99:.0f} ms (p99).\n"
        f"A sender makes {rate:.0f} deliveries a second to {ENDPOINTS} endpoints.\n"
        f"At {PER_SECOND_TO_MANY} changes a second, {MANY_ENDPOINTS - 1} endpoints get them after"
        f" {alive[0]:.0f} ms (p50) and {alive[1]:.0f} ms (p99); {beside_dead[0]:.0f} ms and"
        f" {beside_dead[1]:.0f} ms beside one that never answers."
    )


def _to_many(
    stage: Stage,
    client: FlaskClient,
    headers: dict[str, str],
    change: Callable[[str], None],
    seconds: int,
    *,
    dead: bool,
) -> tuple[float, float]:
    with receiver(client, headers, MANY_ENDPOINTS) as ports:
        if dead:
            urlopen(f"http://127.0.0.1:{ports[0]}/dead").close()
        with process(stage, "sender"):
            return _delays(change, ports[1:], PER_SECOND_TO_MANY, seconds)


def _delays(
    change: Callable[[str], None], ports: list[int], per_second: int, seconds: int
) -> tuple[float, float]:
    """The p50 and p99 in milliseconds, once the sender runs."""
    first = f"City {time.monotonic()}"
    change(first)
    _arrivals(ports, {first})
    changed: dict[str, float] = {}
    started = time.monotonic()
    for number in range(seconds * per_second):
        time.sleep(max(0.0, started + number / per_second - time.monotonic()))
        city = f"City {number} {started}"
        change(city)
        changed[city] = time.monotonic()
    arrivals = _arrivals(ports, changed)
    delays = sorted(max(0.0, moment - changed[city]) * 1000 for city, moment in arrivals)
    return delays[len(delays) // 2], delays[int(len(delays) * 0.99)]


def _rate(stage: Stage, change: Callable[[str], None], ports: list[int]) -> float:
    """Deliveries a second, of changes that have been made before."""
    cities = [f"City {number} of a backlog" for number in range(BACKLOG)]
    for city in cities:
        change(city)
    with process(stage, "sender"):
        moments = sorted(moment for _, moment in _arrivals(ports, cities))
    return len(moments) / (moments[-1] - moments[0])


def _arrivals(ports: list[int], cities: Collection[str]) -> list[tuple[str, float]]:
    """Wait until each port has got these changes: the city and the moment of each arrival.

    Changes that were made before the endpoints may come too; they do not count.
    """
    found: list[tuple[str, float]] = []
    expected = len(cities) * len(ports)
    deadline = time.monotonic() + PATIENCE
    while len(found) < expected:
        if time.monotonic() > deadline:
            raise SystemExit(f"{len(found)} of {expected} deliveries came")
        with urlopen(f"http://127.0.0.1:{ports[0]}/") as answer:
            came = json.load(answer)
        arrived = [
            (json.loads(body)["data"][FIELD], at) for port, at, body in came if port in ports
        ]
        found += [(city, at) for city, at in arrived if city in cities]
        time.sleep(0.5)
    return found


@contextmanager
def receiver(client: FlaskClient, headers: dict[str, str], count: int) -> Iterator[list[int]]:
    """The ports of a receiver, with an endpoint for each of them."""
    command = [sys.executable, "-m", "benchmarks.receiver", str(count)]
    with ExitStack() as undo:
        running = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
        undo.callback(running.wait)
        undo.callback(running.terminate)
        assert running.stdout is not None
        ports = [int(port) for port in running.stdout.readline().split()]
        for port in ports:
            body = {"url": f"http://127.0.0.1:{port}/", "types": ["subscription.updated"]}
            created = client.post("/v1/webhook-endpoints", headers=headers, json=body)
            path = f"/v1/webhook-endpoints/{created.get_json()['data']['id']}"
            undo.callback(client.delete, path, headers=headers)
        yield ports


@contextmanager
def process(stage: Stage, name: str) -> Iterator[None]:
    """A process of ``flask jobs``."""
    command = [sys.executable, "-m", "flask", "--app", "wsgi", "jobs", name]
    running = subprocess.Popen(
        command, cwd=PROJECT, env=stage.environment, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        running.terminate()
        running.wait()

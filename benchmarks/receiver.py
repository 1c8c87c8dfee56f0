"""Accepted webhook events per second, next to a bare handler, and the proof that each is stored."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Sequence

from benchmarks import load
from benchmarks.items import ITEMS, Population
from benchmarks.servers import serving
from benchmarks.stage import Stage

SERVERS = ("service", "floor")


def report(
    stage: Stage,
    population: Population,
    *,
    connections: Sequence[int],
    rounds: int,
    seconds: float,
) -> str:
    """A Markdown table; SystemExit where an event that was answered with 200 is not stored."""
    rates: dict[tuple[str, int], list[load.Load]] = {}
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(serving(stage, name)) for name in SERVERS]
        for _ in range(rounds):
            for count in connections:
                for server in servers:
                    seen = _run(stage, population, server.port, count, seconds)
                    rates.setdefault((server.name, count), []).append(seen)
    lines = [_line(count, *(rates[name, count] for name in SERVERS)) for count in connections]
    return "\n".join(
        [
            "| connections | service /s | floor /s | ÷ floor | p50 ms | p99 ms |",
            "|--:|--:|--:|--:|--:|--:|",
            *lines,
        ]
    )


def _run(
    stage: Stage, population: Population, port: int, connections: int, seconds: float
) -> load.Load:
    item = next(item for item in ITEMS if item.name == "webhook")
    before = _stored(stage)
    requests = item.requests(population, int(seconds * load.FASTEST))
    seen = load.run(requests, port=port, connections=connections, seconds=seconds)
    if _stored(stage) - before < seen.requests:
        raise SystemExit(f"{seen.requests} events were accepted, {_stored(stage) - before} stored.")
    return seen


def _stored(stage: Stage) -> int:
    with contextlib.closing(stage.connect()) as session, session.cursor() as database:
        database.execute("SELECT count(*) FROM webhook_events")
        (count,) = database.fetchone()
    return int(count)


def _line(connections: int, service: list[load.Load], floor: list[load.Load]) -> str:
    ratio = statistics.median(
        one.per_second / other.per_second for one, other in zip(service, floor, strict=True)
    )
    cells = [
        str(connections),
        f"**{_median(service, 'per_second'):,.0f}**",
        f"{_median(floor, 'per_second'):,.0f}",
        f"{ratio:.2f}",
        f"{_median(service, 'p50'):.1f} / {_median(floor, 'p50'):.1f}",
        f"{_median(service, 'p99'):.1f} / {_median(floor, 'p99'):.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def _median(loads: list[load.Load], name: str) -> float:
    return statistics.median(getattr(one, name) for one in loads)

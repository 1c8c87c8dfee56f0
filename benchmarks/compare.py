"""Rounds of the same load against each server in turn, and what a request costs."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psutil

from benchmarks import load
from benchmarks.check import check
from benchmarks.items import Item, Population
from benchmarks.servers import COMMANDS, Server, serving, tree_cpu_seconds
from benchmarks.stage import Stage

WARM_UP = 1  # seconds, of each item on each server


@dataclass(frozen=True)
class Sample:
    """One run of wrk against one server. Times are milliseconds, processor time per request."""

    item: str
    server: str
    connections: int
    round: int
    per_second: float
    p50: float
    p99: float
    web_cpu: float
    postgres_cpu: float


@dataclass(frozen=True)
class Results:
    """All runs, and the memory of the largest web process of each server in MB."""

    samples: list[Sample]
    megabytes: dict[str, float]

    def of(self, item: Item, connections: int) -> list[Sample]:
        """The runs of one cell of the table."""
        return [
            one for one in self.samples if one.item == item.name and one.connections == connections
        ]


def compare(
    stage: Stage,
    items: Sequence[Item],
    *,
    connections: Sequence[int],
    rounds: int,
    seconds: int,
    say: Callable[[str], None],
) -> Results:
    """Check the answers, then measure: rounds of all items, each on all servers in turn."""
    population = Population(stage)
    samples = []
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(serving(stage, name)) for name in COMMANDS]
        check(stage, population, items, servers)
        for server in servers:
            for item in items:
                _run(stage, server, item, population, 16, WARM_UP, -1)
        for number in range(rounds):
            for item in items:
                for count in connections:
                    cell = [
                        _run(stage, server, item, population, count, seconds, number)
                        for server in _rotated(servers, number)
                    ]
                    samples += cell
                    say(_line(number, item, count, cell))
        megabytes = {server.name: server.process_megabytes() for server in servers}
    return Results(samples, megabytes)


def ratio(cell: Sequence[Sample], server: str, other: str) -> float:
    """The median over the rounds of one server's rate divided by the other's in that round."""
    rates = {(one.server, one.round): one.per_second for one in cell}
    numbers = {one.round for one in cell}
    return statistics.median(rates[server, n] / rates[other, n] for n in numbers)


def _run(
    stage: Stage,
    server: Server,
    item: Item,
    population: Population,
    connections: int,
    seconds: int,
    number: int,
) -> Sample:
    requests = item.requests(population, seconds * load.FASTEST)
    postgres = psutil.Process(stage.postmaster())
    web_before, postgres_before = server.cpu_seconds(), tree_cpu_seconds(postgres)
    try:
        seen = load.run(requests, port=server.port, connections=connections, seconds=seconds)
    except load.NotAnswered as fault:
        raise SystemExit(f"{item.title}, {server.name}: {fault}") from None
    item.sent += seen.requests + connections  # wrk stops with a request sent on each connection
    web = server.cpu_seconds() - web_before
    database = tree_cpu_seconds(postgres) - postgres_before
    return Sample(
        item.name,
        server.name,
        connections,
        number,
        seen.per_second,
        seen.p50,
        seen.p99,
        web / seen.requests * 1000,
        database / seen.requests * 1000,
    )


def _rotated(servers: list[Server], number: int) -> list[Server]:
    """Another server goes first in each round."""
    start = number % len(servers)
    return servers[start:] + servers[:start]


def _line(number: int, item: Item, connections: int, cell: Sequence[Sample]) -> str:
    rates = ", ".join(f"{one.server} {one.per_second:.0f}/s" for one in cell)
    return f"round {number + 1}, {item.title}, {connections} connections: {rates}"

"""Alternating rounds of the same load against the three servers, and what each request costs."""

from __future__ import annotations

import contextlib
import socket
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks import load
from benchmarks.items import Item, Population
from benchmarks.messages import counting
from benchmarks.servers import COMMANDS, Server, serving, tree_cpu_seconds
from benchmarks.stage import Stage

CENSUS = 200  # requests over which messages are counted


@dataclass(frozen=True)
class Sample:
    """One run of wrk against one server. Times are milliseconds, CPU per request."""

    item: str
    server: str
    connections: int
    round: int
    per_second: float
    p50: float
    p99: float
    application_cpu: float
    postgres_cpu: float


def compare(
    stage: Stage,
    population: Population,
    items: Sequence[Item],
    *,
    connections: Sequence[int],
    rounds: int,
    seconds: float,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Everything that is reported; see :mod:`benchmarks.report`."""
    messages = {name: _census(stage, name, population, items) for name in COMMANDS}
    samples = []
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(serving(stage, name)) for name in COMMANDS]
        for server in servers:
            for item in items:
                _run(stage, server, item, population, 16, 2, -1)
        for number in range(rounds):
            for item in items:
                for count in connections:
                    for server in _turned(servers, number):
                        sample = _run(stage, server, item, population, count, seconds, number)
                        samples.append(sample)
                    say(_line(number, item, count, samples[-len(servers) :]))
        facts = {
            server.name: {
                "worker_megabytes": server.worker_megabytes(),
                "seconds_to_first_answer": server.seconds_to_first_answer,
            }
            for server in servers
        }
    return {
        "samples": [asdict(sample) for sample in samples],
        "messages": messages,
        "servers": facts,
    }


def ratio(samples: Sequence[dict[str, Any]], server: str, other: str) -> float:
    """The median over the rounds of one server's rate divided by the other's in that round."""
    rates = {(one["server"], one["round"]): one["per_second"] for one in samples}
    numbers = {one["round"] for one in samples}
    return statistics.median(rates[server, n] / rates[other, n] for n in numbers)


def _run(
    stage: Stage,
    server: Server,
    item: Item,
    population: Population,
    connections: int,
    seconds: float,
    number: int,
) -> Sample:
    requests = list(item.requests(population, int(seconds * load.FASTEST)))
    postgres = psutil.Process(stage.postmaster())
    application_before, postgres_before = server.cpu_seconds(), tree_cpu_seconds(postgres)
    try:
        seen = load.run(requests, port=server.port, connections=connections, seconds=seconds)
    except load.NotAnswered as fault:
        raise SystemExit(f"{item.title}, {server.name}: {fault}") from None
    application = server.cpu_seconds() - application_before
    database = tree_cpu_seconds(postgres) - postgres_before
    return Sample(
        item.name,
        server.name,
        connections,
        number,
        seen.per_second,
        seen.p50,
        seen.p99,
        application / seen.requests * 1000,
        database / seen.requests * 1000,
    )


def _census(
    stage: Stage, name: str, population: Population, items: Sequence[Item]
) -> dict[str, dict[str, float]]:
    """Messages to PostgreSQL and to Redis per request of each item."""
    instance = stage.instance
    postgres = instance.sockets / ".s.PGSQL.5432"
    with (
        tempfile.TemporaryDirectory(prefix="messages-") as folder,
        counting(Path(folder), postgres, instance.redis_socket) as proxies,
        serving(stage.behind(Path(folder)), name) as server,
    ):
        found = {}
        for item in items:
            _send(server, item.requests(population, CENSUS // 4))
            before = [proxy.count for proxy in proxies]
            _send(server, item.requests(population, CENSUS))
            to_postgres, to_redis = (
                (proxy.count - count) / CENSUS for proxy, count in zip(proxies, before, strict=True)
            )
            found[item.name] = {"postgres": round(to_postgres, 2), "redis": round(to_redis, 2)}
    return found


def _send(server: Server, requests: Iterator[bytes]) -> None:
    """One after the other, on one connection; raises where an answer is no success."""
    with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
        answers = connection.makefile("rb")
        for request in requests:
            connection.sendall(request)
            status = answers.readline()
            length = 0
            while (line := answers.readline().strip()) != b"":
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            body = answers.read(length)
            if b" 200 " not in status:
                raise SystemExit(
                    f"{server.name}: {request[:200]!r} was answered {status!r} {body!r}"
                )


def _turned(servers: list[Server], number: int) -> list[Server]:
    """Another one goes first in each round."""
    start = number % len(servers)
    return servers[start:] + servers[:start]


def _line(number: int, item: Item, connections: int, samples: Sequence[Sample]) -> str:
    rates = ", ".join(f"{sample.server} {sample.per_second:.0f}/s" for sample in samples)
    return f"round {number + 1}, {item.title}, {connections} connections: {rates}"

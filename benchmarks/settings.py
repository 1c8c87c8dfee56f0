"""How many workers and threads serve best: the same load under several settings of gunicorn."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace

from benchmarks import load
from benchmarks.items import ITEMS, Population
from benchmarks.servers import serving
from benchmarks.stage import Stage

CHOICES = [(1, 8), (2, 2), (2, 3), (2, 4), (2, 8), (2, 16), (4, 2)]
NAMES = ("user", "subscription")


def report(
    stage: Stage,
    population: Population,
    *,
    connections: Sequence[int],
    rounds: int,
    seconds: float,
    say: Callable[[str], None],
) -> str:
    """A Markdown table: requests per second and p99 of a read and of a write, and memory."""
    items = [item for item in ITEMS if item.name in NAMES]
    columns = [(item, count) for item in items for count in connections]
    seen: dict[tuple[int, int, str, int], list[load.Load]] = {}
    memory: dict[tuple[int, int], float] = {}
    for _ in range(rounds):
        for workers, threads in CHOICES:
            settings = {"WEB_CONCURRENCY": str(workers), "DB_POOL_SIZE": str(threads)}
            chosen = replace(stage, environment=stage.environment | settings)
            with serving(chosen, "service") as server:
                for item, count in columns:
                    requests = list(item.requests(population, int(seconds * load.FASTEST)))
                    found = load.run(requests, port=server.port, connections=count, seconds=seconds)
                    seen.setdefault((workers, threads, item.name, count), []).append(found)
                memory[workers, threads] = server.worker_megabytes()
            say(f"{workers} workers of {threads} threads")
    head = ["workers x threads", *(f"{item.title}, {count}" for item, count in columns), "MB"]
    lines = [f"| {' | '.join(head)} |", f"|{'--:|' * len(head)}"]
    for workers, threads in CHOICES:
        cells = [_cell(seen[workers, threads, item.name, count]) for item, count in columns]
        megabytes = f"{workers * memory[workers, threads]:.0f}"
        lines.append(f"| {' | '.join([f'{workers} x {threads}', *cells, megabytes])} |")
    return "\n".join(lines)


def _cell(loads: Sequence[load.Load]) -> str:
    rate = statistics.median(one.per_second for one in loads)
    slowest = statistics.median(one.p99 for one in loads)
    return f"{rate:,.0f}/s, p99 {slowest:.0f} ms"

"""``python -m benchmarks.scale``: the service's reads on several amounts of data, in alternating rounds.

Runs one after the other would show what else the machine did meanwhile. Each amount has engines and
a server of its own, all of them up at once, and load goes to one server at a time.
"""

from __future__ import annotations

import argparse
import statistics
from contextlib import ExitStack
from pathlib import Path

from benchmarks import load
from benchmarks.__main__ import USERS_PER_TENANT
from benchmarks.items import ASKING, ITEMS, Population
from benchmarks.servers import serving
from benchmarks.stage import stage

READS = ("user", "users", "search", "flags")
CONNECTIONS = 16


def main() -> None:
    """Print a table: requests per second for each amount, and the median ratio to the first one's."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--tenants", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--folder", type=Path, required=True, help="the data is kept here: 27 GB")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3, help="of each run of wrk")
    arguments = parser.parse_args()
    print(_table(arguments.folder, arguments.tenants, arguments.rounds, arguments.seconds))


def _table(folder: Path, amounts: list[int], rounds: int, seconds: float) -> str:
    lines = [
        f"| item | {' | '.join(f'{one * USERS_PER_TENANT:,} users' for one in amounts)} |",
        f"|---|{'--:|' * len(amounts)}",
    ]
    with ExitStack() as stack:
        sides = []
        for amount in amounts:
            ready = stack.enter_context(
                stage(folder / str(amount), tenants=amount, users_per_tenant=USERS_PER_TENANT)
            )
            asking = min(ASKING, amount)
            population = Population(ready.environment, amount, USERS_PER_TENANT, asking)
            sides.append((population, stack.enter_context(serving(ready, "service"))))
        for item in (one for one in ITEMS if one.name in READS):
            seen: list[list[float]] = [[] for _ in amounts]
            for number in range(-1, rounds):  # the first one warms up
                for place in range(len(amounts))[:: -1 if number % 2 else 1]:
                    population, server = sides[place]
                    requests = item.requests(population, int(seconds * load.FASTEST))
                    found = load.run(
                        requests, port=server.port, connections=CONNECTIONS, seconds=seconds
                    )
                    if number >= 0:
                        seen[place].append(found.per_second)
            cells = [_cell(one, seen[0]) for one in seen]
            lines.append(f"| {item.title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(seen: list[float], first: list[float]) -> str:
    ratio = statistics.median(one / other for one, other in zip(seen, first, strict=True))
    return f"{statistics.median(seen):,.0f} ({ratio:.2f})"


if __name__ == "__main__":
    main()

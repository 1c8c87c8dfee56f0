"""``python -m benchmarks``: compare the service with a bare handler and with another stack."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.items import ASKING, ITEMS, Population
from benchmarks.stage import PROJECT, Stage, stage

RESULTS = PROJECT / "benchmarks" / "results"
USERS_PER_TENANT = 100


def main() -> None:
    arguments = parse()
    COMMANDS[arguments.command](arguments)


def parse() -> argparse.Namespace:
    names = [item.name for item in ITEMS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("command", nargs="?", default="compare", choices=COMMANDS)
    parser.add_argument("--tenants", type=int, default=1_000, help="with a hundred users each")
    parser.add_argument(
        "--asking", type=int, default=ASKING, help="tenants that requests come from"
    )
    parser.add_argument("--folder", type=Path, help="keep the engines' data here, to use it again")
    parser.add_argument("--items", nargs="+", choices=names, default=names)
    parser.add_argument("--connections", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3, help="of each run of wrk")
    parser.add_argument("--requests", type=int, default=3_000, help="of `layers`")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--publish", action="store_true", help="put the table into README.md")
    return parser.parse_args()


@contextmanager
def opened(arguments: argparse.Namespace) -> Iterator[tuple[Stage, Population]]:
    """The engines with their data, in a folder that is thrown away unless one was named."""
    with (
        tempfile.TemporaryDirectory(prefix="benchmarks-") as folder,
        stage(
            arguments.folder or Path(folder),
            tenants=arguments.tenants,
            users_per_tenant=USERS_PER_TENANT,
        ) as ready,
    ):
        asking = max(1, min(arguments.asking, arguments.tenants))
        yield ready, Population(ready.environment, arguments.tenants, USERS_PER_TENANT, asking)


def compare(arguments: argparse.Namespace) -> None:
    """Write the results as JSON, Markdown and PNG, and print the table."""
    from benchmarks import report
    from benchmarks.compare import compare

    items = [item for item in ITEMS if item.name in arguments.items]
    with opened(arguments) as (ready, population):
        results = compare(
            ready,
            population,
            items,
            **_load(arguments),
            say=print,
        )
        results["circumstances"] = report.circumstances(ready)
    arguments.output.mkdir(parents=True, exist_ok=True)
    text = report.table(results, items)
    (arguments.output / "results.json").write_text(json.dumps(results, indent=1))
    (arguments.output / "results.md").write_text(text)
    report.plot(results, items, arguments.output / "results.png")
    if arguments.publish:
        report.publish(text, arguments.output / "results.png")
    print(text)


def layers(arguments: argparse.Namespace) -> None:
    """Print what each layer of one PATCH costs."""
    from benchmarks.layers import report

    with opened(arguments) as (ready, population):
        print(report(ready, population, requests=arguments.requests))


def receiver(arguments: argparse.Namespace) -> None:
    """Print how many webhook events per second are accepted and stored."""
    from benchmarks.receiver import report

    with opened(arguments) as (ready, population):
        print(report(ready, population, **_load(arguments)))


def settings(arguments: argparse.Namespace) -> None:
    """Print how the service does with other numbers of workers and threads."""
    from benchmarks.settings import report

    with opened(arguments) as (ready, population):
        print(report(ready, population, **_load(arguments), say=print))


def calls(arguments: argparse.Namespace) -> None:
    """Print the calls of our own code and the files of a PATCH of a subscription."""
    from benchmarks.calls import report

    with (
        tempfile.TemporaryDirectory(prefix="benchmarks-") as folder,
        stage(Path(folder), tenants=1, users_per_tenant=2) as ready,
    ):
        print(report(ready))


def _load(arguments: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(arguments, name) for name in ("connections", "rounds", "seconds")}


COMMANDS = {
    "compare": compare,
    "calls": calls,
    "layers": layers,
    "receiver": receiver,
    "settings": settings,
}


if __name__ == "__main__":
    main()

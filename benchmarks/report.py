"""The results as Markdown tables."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil

from benchmarks.compare import Results, Sample, ratio
from benchmarks.items import Item, Population
from benchmarks.stage import RATE_LIMIT, Stage

PAGE = Path(__file__).with_name("README.md")
START, END = "<!-- results -->", "<!-- /results -->"
PEERS = ("core", "asyncpg", "floor")
SERVERS = ("service", *PEERS)
PACKAGES = (
    *("flask", "gunicorn", "sqlalchemy", "psycopg2-binary", "redis"),
    *("fastapi", "uvicorn", "asyncpg", "pydantic"),
)
HEADER = (
    "| item | requests/s | ÷ core | ÷ asyncpg | ÷ floor | p99 ms | CPU ms, web + PostgreSQL |\n"
    "|---|--:|--:|--:|--:|--:|--:|"
)


def tables(
    stage: Stage, results: Results, items: Sequence[Item], *, rounds: int, seconds: int
) -> str:
    """The settings of the run, one table per number of connections, and the memory."""
    parts = [
        f"{rounds} rounds of {seconds} s per cell. {_machine(stage)}"
        " Cells with several figures: service / core / asyncpg / floor."
    ]
    for connections in sorted({one.connections for one in results.samples}):
        rows = [_row(item, results.of(item, connections)) for item in items]
        parts += [f"### {connections} connections", "\n".join([HEADER, *rows])]
    memory = " / ".join(f"{results.megabytes[name]:.0f}" for name in SERVERS)
    parts.append(f"Resident memory of the largest web process, MB: {memory}.")
    return "\n\n".join(parts) + "\n"


def publish(text: str) -> None:
    """Put the tables between the marks of the README."""
    before, _, rest = PAGE.read_text().partition(START)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{START}\n{text}{END}{after}")


def _row(item: Item, cell: Sequence[Sample]) -> str:
    rates = [f"{_median(cell, name, 'per_second'):,.0f}" for name in SERVERS]
    cells = [
        item.title,
        " / ".join([f"**{rates[0]}**", *rates[1:]]),
        *(f"{ratio(cell, 'service', name):.2f}" for name in PEERS),
        " / ".join(f"{_median(cell, name, 'p99'):.0f}" for name in SERVERS),
        " / ".join(
            f"{_median(cell, name, 'web_cpu'):.2f}+{_median(cell, name, 'postgres_cpu'):.2f}"
            for name in SERVERS
        ),
    ]
    return f"| {' | '.join(cells)} |"


def _median(cell: Sequence[Sample], server: str, name: str) -> float:
    return statistics.median(getattr(one, name) for one in cell if one.server == server)


def _machine(stage: Stage) -> str:
    with stage.connect() as session, session.cursor() as database:
        database.execute("SHOW server_version")
        (postgres,) = database.fetchone()
    session.close()
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    users = stage.tenants * stage.users_per_tenant
    return (
        f"{datetime.now(UTC).date()}, {_processor()}, {psutil.cpu_count()} cores,"
        f" {psutil.virtual_memory().total / 1e9:.0f} GB, Python {platform.python_version()},"
        f" PostgreSQL {postgres.split()[0]}, {packages}. {stage.tenants:,} tenants,"
        f" {users:,} users, {Population(stage).credentials:,} credentials,"
        f" `RATELIMIT_DEFAULT={RATE_LIMIT}`."
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()

"""The results as a table, a file and a picture."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import matplotlib as mpl
import psutil

mpl.use("Agg")
from matplotlib import pyplot as plt

from benchmarks.compare import ratio
from benchmarks.items import Item
from benchmarks.stage import Stage

START, END = "<!-- results -->", "<!-- /results -->"
SERVERS = ("service", "floor", "peer")
COLORS = {"service": "#2a6f97", "floor": "#b8b8b8", "peer": "#e09f3e"}
PACKAGES = (
    *("flask", "gunicorn", "sqlalchemy", "psycopg2-binary", "redis"),
    *("fastapi", "uvicorn", "asyncpg", "pydantic"),
)


def circumstances(stage: Stage) -> dict[str, Any]:
    """The machine, the versions and the size of the data."""
    with stage.connect() as session, session.cursor() as database:
        database.execute("SHOW server_version")
        (postgres,) = database.fetchone()
        database.execute("SELECT count(*) FROM users")
        (users,) = database.fetchone()
    session.close()
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "processor": _processor(),
        "cores": psutil.cpu_count(),
        "memory_gigabytes": round(psutil.virtual_memory().total / 1e9),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "postgresql": postgres.split()[0],
        "packages": {name: version(name) for name in PACKAGES},
        "tenants": stage.tenants,
        "users": users,
    }


def table(results: dict[str, Any], items: Sequence[Item]) -> str:
    """Markdown: one table for each number of connections, and the circumstances."""
    parts = [_circumstances_line(results["circumstances"])]
    for connections in sorted({one["connections"] for one in results["samples"]}):
        parts.append(f"### {connections} connections\n\n{_table(results, items, connections)}")
    parts.append(f"### Servers\n\n{_servers(results['servers'])}")
    return "\n\n".join(parts) + "\n"


def _table(results: dict[str, Any], items: Sequence[Item], connections: int) -> str:
    header = (
        "| item | service /s | floor /s | peer /s | ÷ peer | ÷ floor | p50 ms | p99 ms"
        " | CPU ms (app + PostgreSQL) | messages (PostgreSQL + Redis) |\n"
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    )
    lines = [_row(results, item, connections) for item in items]
    return "\n".join([header, *lines])


def _row(results: dict[str, Any], item: Item, connections: int) -> str:
    samples = [
        one
        for one in results["samples"]
        if one["item"] == item.name and one["connections"] == connections
    ]
    rates = {name: f"{_median(samples, name, 'per_second'):,.0f}" for name in SERVERS}
    cells = [
        item.title,
        f"**{rates['service']}**",
        rates["floor"],
        rates["peer"],
        f"{ratio(samples, 'service', 'peer'):.2f}",
        f"{ratio(samples, 'service', 'floor'):.2f}",
        _slashed(f"{_median(samples, name, 'p50'):.1f}" for name in SERVERS),
        _slashed(f"{_median(samples, name, 'p99'):.1f}" for name in SERVERS),
        _slashed(
            f"{_median(samples, name, 'application_cpu'):.2f}"
            f" + {_median(samples, name, 'postgres_cpu'):.2f}"
            for name in SERVERS
        ),
        _slashed(_messages(results["messages"][name][item.name]) for name in SERVERS),
    ]
    return f"| {' | '.join(cells)} |"


def _servers(facts: dict[str, dict[str, float]]) -> str:
    lines = ["| server | memory per worker, MB | first answer after, s |", "|---|--:|--:|"]
    lines += [
        f"| {name} | {fact['worker_megabytes']:.0f} | {fact['seconds_to_first_answer']:.1f} |"
        for name, fact in facts.items()
    ]
    return "\n".join(lines)


def _circumstances_line(facts: dict[str, Any]) -> str:
    packages = ", ".join(f"{name} {number}" for name, number in facts["packages"].items())
    return (
        f"{facts['date']}, {facts['processor']}, {facts['cores']} cores,"
        f" {facts['memory_gigabytes']} GB, {facts['kernel']}; Python {facts['python']},"
        f" PostgreSQL {facts['postgresql']}, {packages}. {facts['tenants']:,} tenants,"
        f" {facts['users']:,} users. Three figures in a cell: service / floor / peer."
    )


def plot(results: dict[str, Any], items: Sequence[Item], path: Path) -> None:
    """Bars of requests per second, one panel for each number of connections."""
    counts = sorted({one["connections"] for one in results["samples"]})
    figure, axes = plt.subplots(1, len(counts), figsize=(7 * len(counts), 4.5), squeeze=False)
    for panel, connections in zip(axes[0], counts, strict=True):
        for place, server in enumerate(SERVERS):
            rates = [
                statistics.median(
                    one["per_second"]
                    for one in results["samples"]
                    if (one["item"], one["server"], one["connections"])
                    == (item.name, server, connections)
                )
                for item in items
            ]
            positions = [index + (place - 1) * 0.27 for index in range(len(items))]
            panel.bar(positions, rates, 0.25, label=server, color=COLORS[server])
        panel.set_title(f"{connections} connections")
        panel.set_xticks(range(len(items)), [item.title for item in items], rotation=30, ha="right")
        panel.set_ylabel("requests per second")
        panel.spines[["top", "right"]].set_visible(False)
    axes[0][0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def publish(text: str, picture: Path) -> None:
    """Put the table and the picture between the marks of the README."""
    page = Path(__file__).with_name("README.md")
    before, _, rest = page.read_text().partition(START)
    _, _, after = rest.partition(END)
    image = f"![Requests per second]({os.path.relpath(picture, page.parent)})"
    page.write_text(f"{before}{START}\n{image}\n\n{text}{END}{after}")


def _median(samples: Sequence[dict[str, Any]], server: str, name: str) -> float:
    return statistics.median(one[name] for one in samples if one["server"] == server)


def _messages(count: dict[str, float]) -> str:
    return " + ".join(f"{number:g}" for number in count.values())


def _slashed(cells: Any) -> str:
    return " / ".join(cells)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()

"""The report of ``python -m benchmarks.search``."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from psycopg2.extensions import connection

from benchmarks.search.searches import Timing
from benchmarks.search.writes import Cost

SIZES = """
SELECT relname, pg_relation_size(oid), reltuples::bigint FROM pg_class
WHERE oid = 'custom_field_index_rows'::regclass
    OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 'custom_field_index_rows'::regclass)
ORDER BY relkind DESC, relname
"""


@dataclass(frozen=True)
class Build:
    """Index rows that the service built, and how long it took, in seconds."""

    rows: int
    seconds: float


@dataclass(frozen=True)
class Results:
    """All that was measured."""

    tenants: int
    users_per_tenant: int
    built: Build
    load_seconds: float
    before: list[Timing]
    after: list[Timing]
    sizes: Mapping[str, tuple[int, int]]
    costs: list[Cost]
    wrong: int


def sizes(session: connection) -> dict[str, tuple[int, int]]:
    """Bytes and rows of the table of index rows and of each of its indexes."""
    with session, session.cursor() as database:
        database.execute(SIZES)
        return {name: (size, rows) for name, size, rows in database.fetchall()}


def text(results: Results, *, seconds: float) -> str:
    """Markdown."""
    users = results.tenants * results.users_per_tenant
    return "\n".join(
        [
            "# Searching users by custom fields",
            "",
            f"{users:,} users in {results.tenants:,} tenants, five searchable fields each, on"
            f" {os.cpu_count()} processors ({platform.machine()}, Python"
            f" {platform.python_version()}) with a load average of {os.getloadavg()[2]:.1f}."
            f" The whole run took {seconds / 60:.1f} minutes.",
            "",
            *_searches(results),
            "",
            *_index(results),
            "",
            *_patches(results.costs),
            "",
            f"Entities whose index rows differ from the data, in the tenants that were compared:"
            f" {results.wrong}.",
            "",
        ]
    )


def _searches(results: Results) -> Iterable[str]:
    yield (
        "Searches of one tenant: planning and execution in the database, in milliseconds, under"
        " row-level security as the plain role, each with another value each time."
    )
    yield ""
    few = results.tenants // 10
    yield f"| search | rows | {few:,} tenants: median | p95 | {results.tenants:,}: median | p95 | read |"
    yield "|---|--:|--:|--:|--:|--:|---|"
    for before, after in zip(results.before, results.after, strict=True):
        scans = ", ".join(f"`{name}`" for name in after.scans)
        yield (
            f"| {after.name} | {after.found:.0f} | {before.median:.2f} | {before.p95:.2f}"
            f" | {after.median:.2f} | {after.p95:.2f} | {scans} |"
        )


def _index(results: Results) -> Iterable[str]:
    _, rows = next(iter(results.sizes.values()))
    yield "| relation | MB | MB per million rows |"
    yield "|---|--:|--:|"
    for name, (size, _) in results.sizes.items():
        yield f"| `{name}` | {size / 1e6:.0f} | {size / rows:.0f} |"
    total = sum(size for size, _ in results.sizes.values())
    yield f"| together, {rows:,} rows | {total / 1e6:.0f} | {total / rows:.0f} |"
    yield ""
    built = results.built
    yield (
        f"One worker built {built.rows:,} rows in {built.seconds:.1f} s:"
        f" {built.seconds / built.rows * 1e6:.0f} s per million rows."
        f" COPY loaded the last nine tenths of users and rows in {results.load_seconds:.0f} s."
    )


def _patches(costs: list[Cost]) -> Iterable[str]:
    yield (
        "A patch of `meta_data`, in the process and with a durable commit, without HTTP and"
        " authentication:"
    )
    yield ""
    yield "| searchable fields | of them in the patch | median ms | round trips |"
    yield "|--:|--:|--:|--:|"
    for cost in costs:
        yield f"| {cost.fields} | {cost.touched} | {cost.median:.2f} | {cost.statements:.0f} |"

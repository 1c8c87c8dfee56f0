"""How long PostgreSQL takes for a search, and the indexes that its plan reads."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from flask import Flask
from sqlalchemy import select

from app.core.db import tenancy
from app.core.db.statements import Statement
from app.core.db.transactions import current_transaction, transaction
from app.custom_fields.search_index import query as search
from app.users.models import User
from benchmarks.dataset import DEPARTMENTS, row_id
from benchmarks.search.data import TENANT, values

REPEATS = 100
PAGE = 51


@dataclass(frozen=True)
class Timing:
    """One kind of search; times are planning plus execution, in milliseconds."""

    name: str
    median: float
    p95: float
    found: float
    scans: tuple[str, ...]


def measure(app: Flask, *, tenant: int, users_per_tenant: int) -> list[Timing]:
    """Each kind of search of one tenant, with other values each time, as the plain role."""
    first = tenant * users_per_tenant
    dice = Random(tenant)

    def value(key: str) -> Any:
        return values(first + dice.randrange(users_per_tenant))[key]

    kinds = {
        "equality, one match": lambda: {"code": value("code")},
        "equality, an eighth matches": lambda: {"department": dice.choice(DEPARTMENTS)},
        "equality on two fields": lambda: {
            "department": dice.choice(DEPARTMENTS),
            "level": str(value("level")),
        },
        "prefix": lambda: {"code__prefix": value("code")[:4]},
        "range of numbers": lambda: _range("level", dice.randrange(90), 9),
        "range of decimals": lambda: _range("score", dice.randrange(90), 5),
        "range of dates, open": lambda: {"hired_on__gte": f"20{dice.randrange(20, 24)}-01-01"},
        "equality and a range": lambda: {
            "department": dice.choice(DEPARTMENTS),
            **_range("level", dice.randrange(90), 9),
        },
    }
    return [_timing(app, name, make, tenant) for name, make in kinds.items()]


def _range(key: str, low: int, width: int) -> dict[str, str]:
    return {f"{key}__gte": str(low), f"{key}__lte": str(low + width)}


def _timing(app: Flask, name: str, make: Any, tenant: int) -> Timing:
    plans = [_explain(app, make(), tenant) for _ in range(REPEATS)]
    times = sorted(plan["Planning Time"] + plan["Execution Time"] for plan in plans)
    scans = {scan for plan in plans for scan in _scans(plan["Plan"])}
    found = statistics.mean(plan["Plan"]["Actual Rows"] for plan in plans)
    return Timing(
        name, statistics.median(times), times[int(len(times) * 0.95)], found, tuple(sorted(scans))
    )


def _explain(app: Flask, query: Mapping[str, str], tenant: int) -> dict[str, Any]:
    tenant_id = row_id(TENANT, tenant)
    asked = {f"{search.PREFIX}{name}": value for name, value in query.items()}
    with app.app_context(), transaction():
        tenancy.enter(tenancy.Scope(tenant_id))
        condition = search.among(tenant_id, "user", asked, User.id)
        chosen = select(User).where(condition.clause).order_by(User.created_at, User.id)
        statement = Statement("benchmark.search", chosen.limit(PAGE))
        result = current_transaction().execute(
            f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {statement.text}",
            {**statement.constants, **condition.values},
        )
        plan: dict[str, Any] = result.fetchall()[0][0][0]
        return plan


def _scans(node: Mapping[str, Any]) -> Iterator[str]:
    if "Index Name" in node:
        yield str(node["Index Name"])
    elif node["Node Type"].endswith("Scan") and "Plans" not in node:
        yield f"{node['Node Type']} of {node.get('Relation Name')}"
    for inner in node.get("Plans", ()):
        yield from _scans(inner)

"""The cost of a patch of ``meta_data`` with no, five and twenty searchable fields."""

from __future__ import annotations

import statistics
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flask import Flask

from app.core.actors import SYSTEM_CLI
from app.core.db import tenancy
from app.core.db.transactions import observers, transaction
from app.custom_fields import service as custom_fields
from app.custom_fields.search_index import builder
from app.tenants import service as tenants
from app.users import service as users

USERS = 50
REPEATS = 300
PLAIN = "free"  # a key that is no field


@dataclass(frozen=True)
class Cost:
    """A patch in one tenant: median milliseconds and round trips, without HTTP and authentication."""

    fields: int
    touched: int
    median: float
    statements: float


def measure(app: Flask) -> list[Cost]:
    """Patches that touch no, one and every searchable field."""
    costs = []
    for number in (0, 5, 20):
        tenant_id, ids = _create(app, number)
        for touched in sorted({0, min(1, number), number}):
            costs.append(_cost(app, tenant_id, ids, number, touched))
    return costs


def _create(app: Flask, fields: int) -> tuple[UUID, list[UUID]]:
    with app.app_context():
        with transaction():
            tenancy.enter(tenancy.PLATFORM)
            organization = {"idp_org_id": f"writes_{fields}", "name": f"Writes {fields}"}
            tenant = tenants.create(organization, actor=SYSTEM_CLI)
            ids = [_create_user(tenant.id, number) for number in range(USERS)]
            made = [_create_field(tenant, place) for place in range(fields)]
        for field in made:
            for _ in builder.work(field.tenant_id, field.id):
                pass
    return tenant.id, ids


def _create_user(tenant_id: UUID, number: int) -> UUID:
    values = {
        "idp_user_id": f"writer-{number}",
        "email": "writer@example.com",
        "meta_data": {f"field_{place}": "begin" for place in range(20)} | {PLAIN: 0},
    }
    return users.create(tenant_id, values, actor=SYSTEM_CLI).id


def _create_field(tenant: Any, place: int) -> Any:
    values = {
        "entity_type": "user",
        "field_key": f"field_{place}",
        "label": f"Field {place}",
        "field_type": "text",
        "is_searchable": True,
    }
    return custom_fields.create(tenant, values, actor=SYSTEM_CLI)


def _cost(app: Flask, tenant_id: UUID, ids: list[UUID], fields: int, touched: int) -> Cost:
    times, statements = [], 0

    def count(*_: Any) -> AbstractContextManager[None]:
        nonlocal statements
        statements += 1
        return nullcontext()

    with app.app_context():
        observers.append(count)
        for number in range(REPEATS):
            patch = {f"field_{place}": f"value {number}" for place in range(touched)}
            times.append(_patch(tenant_id, ids[number % USERS], patch | {PLAIN: number + 1}))
        observers.remove(count)
    return Cost(fields, touched, statistics.median(times) * 1000, statements / REPEATS)


def _patch(tenant_id: UUID, user_id: UUID, patch: dict[str, Any]) -> float:
    started = time.perf_counter()
    with transaction():
        tenancy.enter(tenancy.Scope(tenant_id))
        users.patch_meta_data(user_id, patch, actor=SYSTEM_CLI)
    return time.perf_counter() - started

"""The worker that deletes a tenant is killed at random moments: in the end no row of the tenant
remains, and another tenant keeps all of its rows.
"""

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass

from flask import Flask

from app.audit.models import AuditEvent
from app.core.clock import utcnow
from app.core.jobs.queues import Queue
from app.privacy.jobs import delete_tenant
from app.privacy.tenants import deletion_stages
from app.tenants.models import Tenant, TenantDeletion
from tests import database, factories
from tests.custom_fields.fields import analyze, create_field, create_users
from tests.faults import _worker

PATIENCE = 120  # seconds to wait for the end
COPIES = 5
AUDIT_ROWS = """
INSERT INTO audit_events (tenant_id, id, created_at, actor, action, target_type, target_id, before,
    after, request_id)
SELECT tenant_id, gen_random_uuid(), now(), '', 'user.updated', 'user', id::text, '{}', '{}', ''
FROM users WHERE tenant_id = :tenant_id
"""


@dataclass
class Report:
    """What happened."""

    kills: int = 0
    rows: int = 0


def prove(
    app: Flask, environment: Mapping[str, str], *, kills: int = 20, users: int = 50_000
) -> Report:
    """Kill ``kills`` times, finish; AssertionError where a row is left, or counted wrongly."""
    report = Report()
    gone, kept = (_create_tenant(users) for _ in range(2))
    analyze(app)
    expected, others = _count(gone), _count(kept)
    database.execute(
        "UPDATE tenants SET is_active = false, deletes_at = :now WHERE id = :id",
        id=gone.id,
        now=utcnow(),
    )
    factories.save(TenantDeletion, tenant_id=gone.id, requested_by="cli:tester")
    while report.kills < kills and database.rows(TenantDeletion):
        _work(app, environment, gone, seconds=random.uniform(0.1, 0.5))
        report.kills += 1
    deadline = time.monotonic() + PATIENCE
    with app.app_context():
        # The last worker's server process may hold its lock for a moment.
        while database.rows(TenantDeletion) and time.monotonic() < deadline:
            if not deletion_stages.delete_batch(gone.id):
                time.sleep(0.1)
    (event,) = database.rows(AuditEvent, action="tenant.deleted")
    counted = event.after["rows"]
    report.rows = sum(counted.values())
    assert database.rows(Tenant, id=gone.id) == []
    assert {name: counted.get(name, 0) for name in expected} == expected
    assert not any(_count(gone).values())
    assert _count(kept) == others
    return report


def _create_tenant(users: int) -> Tenant:
    tenant = factories.create_tenant()
    create_field(tenant)
    create_users(tenant, users)
    for _ in range(COPIES):  # one statement for all can exceed DB_STATEMENT_TIMEOUT
        database.execute(AUDIT_ROWS, tenant_id=tenant.id)
    return tenant


def _count(tenant: Tenant) -> dict[str, int]:
    return {
        table: database.query(
            f'SELECT count(*) AS number FROM "{table}" WHERE tenant_id = :id', id=tenant.id
        )[0].number
        for table in deletion_stages.tables()
    }


def _work(app: Flask, environment: Mapping[str, str], tenant: Tenant, *, seconds: float) -> None:
    """Let a worker delete for some time, then kill it and the process of its job."""
    with app.app_context():
        delete_tenant.push(str(tenant.id))
    worker = _worker.start(environment, [Queue.MAINTENANCE])
    deadline = time.monotonic() + PATIENCE
    before = _progress()
    while _progress() == before and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(seconds)
    _worker.kill(worker)


def _progress() -> list[object]:
    return [(row.stage, row.deleted_rows) for row in database.rows(TenantDeletion)]

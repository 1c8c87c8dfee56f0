"""Deleting the tenants that ``flask webhooks send-test`` has created."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import select

from app.cli.base import operator
from app.core.actors import SYSTEM_CLI
from app.core.db.statements import Statement
from app.privacy.deletion import delete_batch
from app.tenants import deletion, service
from app.tenants.models import Tenant
from app.webhooks.signatures.samples import is_sample

FIND = Statement(
    "tenants.find_samples",
    select(Tenant.id, Tenant.slug, Tenant.idp_org_id).where(
        Tenant.idp_org_id.startswith("sample_", autoescape=True)
    ),
)


def delete_samples() -> int:
    """Delete the sample tenants, without a worker; their number."""
    found = _request()
    for tenant_id in found:
        while delete_batch(tenant_id):
            pass
    return len(found)


@operator
def _request() -> Sequence[UUID]:
    samples = [row for row in FIND.all() if is_sample(row.idp_org_id)]
    for row in samples:
        service.set_active(row.id, False, actor=SYSTEM_CLI)
        deletion.request(row.id, row.slug, at_once=True, actor=SYSTEM_CLI)
    return [row.id for row in samples]

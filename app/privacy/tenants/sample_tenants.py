"""Deleting the tenants that ``flask webhooks send-test`` has created."""

from __future__ import annotations

from sqlalchemy import select

from app.core.actors import Actor
from app.core.db import tenancy
from app.core.db.statements import Statement
from app.inbox.signatures.samples import is_sample
from app.privacy.tenants.deletion_stages import delete_batch
from app.tenants import deletion, service
from app.tenants.models import Tenant

FIND = Statement(
    "tenants.find_samples",
    select(Tenant.id, Tenant.slug, Tenant.idp_org_id).where(
        Tenant.idp_org_id.startswith("sample_", autoescape=True)
    ),
)


def delete_samples(*, actor: Actor) -> int:
    """Delete the sample tenants, without a worker; their number."""
    with tenancy.platform_transaction():
        samples = [row for row in FIND.all() if is_sample(row.idp_org_id)]
        for row in samples:
            service.set_active(row.id, False, actor=actor)
            deletion.request(row.id, row.slug, at_once=True, actor=actor)
    for row in samples:
        while delete_batch(row.id):
            pass
    return len(samples)

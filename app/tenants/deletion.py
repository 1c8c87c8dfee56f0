"""Requests to delete a tenant. :mod:`app.privacy.tenants` deletes it when its time has come."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from app.audit.service import add_event, record
from app.config import current_config
from app.core.actors import Actor
from app.core.clock import utcnow
from app.core.db import queries
from app.core.db.queries import Change
from app.core.db.statements import Statement
from app.core.db.writes import insert_row
from app.core.errors import Conflict, Invalid, NotFound, value_error
from app.tenants.models import DeletedOrganization, DeletionStage, Tenant, TenantDeletion

LISTED = 1000

DELETIONS = (
    "SELECT d.tenant_id, t.slug, d.requested_at, d.requested_by, t.deletes_at, d.stage"
    " FROM tenant_deletions d JOIN tenants t ON t.id = d.tenant_id"
)
FIND = Statement("tenant_deletions.find_of_tenant", f"{DELETIONS} WHERE t.id = :tenant_id")
LIST = Statement("tenant_deletions.list", f"{DELETIONS} ORDER BY t.deletes_at, t.id LIMIT {LISTED}")


class TenantActive(Conflict):
    code = "tenant_active"
    detail = "This tenant is active; suspend it first."


class DeletionStarted(Conflict):
    code = "deletion_started"
    detail = "The deletion of this tenant has started, so it cannot be restored."


def request(tenant_id: UUID | str, slug: str, *, at_once: bool = False, actor: Actor) -> Any:
    """Request the deletion of a suspended tenant after ``TENANT_GRACE_DAYS``, or ``at_once``.

    A second request changes nothing, except that ``at_once`` ends the wait. Returns the deletion.
    Raises NotFound, Invalid if ``slug`` is not the tenant's, and TenantActive.
    """
    tenant, _ = queries.lock_with(Tenant, queries.parse_id(tenant_id, Tenant))
    if slug != tenant.slug:
        raise Invalid(value_error(["body", "slug"], "this is not the slug of the tenant", slug))
    queries.check_precondition(tenant)
    if tenant.is_active:
        raise TenantActive
    now = utcnow()
    if tenant.deletes_at is None:
        insert_row(TenantDeletion, {"tenant_id": tenant.id, "requested_by": actor.id})
        days = current_config().tenant_grace_days
        _set_date(tenant, now + timedelta(days=0 if at_once else days), actor)
    elif at_once and tenant.deletes_at > now:
        _set_date(tenant, now, actor)
    return get_deletion(tenant.id)


def get_deletion(tenant_id: UUID | str) -> Any:
    """The row of :data:`FIND`, a requested deletion; raises NotFound where none is requested."""
    return FIND.get(TenantDeletion, tenant_id=queries.parse_id(tenant_id, Tenant))


def list_deletions() -> Sequence[Any]:
    """The requested deletions, at most :data:`LISTED`, in the order of their dates."""
    return LIST.all()


def restore(tenant_id: UUID | str, *, actor: Actor) -> Tenant:
    """Withdraw the request to delete a tenant, which stays suspended.

    Changes nothing where no deletion is requested. Raises NotFound and DeletionStarted.
    """
    tenant = queries.lock_row(Tenant, tenant_id)
    if tenant.deletes_at is None:
        return tenant
    stage = DeletionStage.WAITING.value
    if queries.delete_where(TenantDeletion, tenant_id=tenant.id, stage=stage) == 0:
        raise DeletionStarted
    tenant, change = queries.update_row(Tenant, tenant, {"deletes_at": None})
    record("tenant.restored", tenant, change, actor=actor)
    return tenant


def free_idp_org_id(idp_org_id: str, *, actor: Actor) -> None:
    """Let a tenant have the ``idp_org_id`` of a deleted one again.

    Raises NotFound for an id that is not of a deleted tenant.
    """
    if queries.delete_where(DeletedOrganization, idp_org_id=idp_org_id) == 0:
        raise NotFound(detail="No deleted tenant had this idp_org_id.")
    add_event(
        "tenant.idp_org_id_freed",
        target_id=idp_org_id,
        tenant_id=None,
        change=Change({}, {}),
        actor=actor,
    )


def _set_date(tenant: Tenant, deletes_at: datetime, actor: Actor) -> None:
    tenant, change = queries.update_row(Tenant, tenant, {"deletes_at": deletes_at})
    record("tenant.deletion_requested", tenant, change, actor=actor)

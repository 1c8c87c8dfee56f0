"""The audit trail: who changed what, with the values before and after."""

from __future__ import annotations

from uuid import UUID

from flask import render_template

from app.console.access import signed_in
from app.console.blueprint import console
from app.console.lists import Filter, list_rows
from app.console.pages.common import get_tenant

FILTERS = (
    Filter("action", "Action"),
    Filter("actor", "Actor's id"),
    Filter("target_type", "Type"),
    Filter("target_id", "Row's id"),
)


@console.get("/audit")
@console.get("/tenants/<uuid:tenant_id>/audit")
@signed_in
def list_audit(tenant_id: UUID | None = None) -> str:
    """List recorded changes, of one tenant or of all."""
    return render_template(
        "console/audit.html",
        title="Audit",
        tenant=get_tenant(tenant_id),
        listing=list_rows(
            "/v1/audit-events", FILTERS, tenant_id=tenant_id, include="tenant,actor_name"
        ),
    )

"""The audit trail: who changed what, with the values before and after."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import Response, render_template, url_for

from app.console import api
from app.console.access import signed_in
from app.console.blueprint import console
from app.console.lists import Filter, filter_values, list_rows
from app.console.pages.common import get_tenant

PATH = "/v1/audit-events"
LINES = 10_000  # of a download
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
    listing = list_rows(PATH, FILTERS, tenant_id=tenant_id, include="tenant,actor_name")
    values: dict[str, Any] = dict(listing.values)
    return render_template(
        "console/audit.html",
        title="Audit",
        tenant=get_tenant(tenant_id),
        listing=listing,
        csv_url=url_for("console.download_audit", tenant_id=tenant_id, **values),
    )


@console.get("/audit.csv")
@console.get("/tenants/<uuid:tenant_id>/audit.csv")
@signed_in
def download_audit(tenant_id: UUID | None = None) -> Response:
    """Download the newest recorded changes that the filters in the URL choose."""
    values = {**filter_values(FILTERS), "order": "-created_at", "limit": LINES}
    answer = api.get(f"{PATH}/csv", tenant_id=tenant_id, **values)
    return Response(
        answer.text,
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="audit.csv"'},
    )

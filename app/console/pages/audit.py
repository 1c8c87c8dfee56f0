"""The audit trail: who changed what, with the values before and after."""

from __future__ import annotations

from uuid import UUID

from flask import Response, url_for

from app.console import api
from app.console.blueprint import Shown, page, render
from app.console.lists import Filter, filter_values, list_rows
from app.core.json_text import Json

PATH = "/v1/audit-events"
LINES = 10_000  # of a download
FILTERS = (
    Filter("action", "Action"),
    Filter("actor", "Actor's id"),
    Filter("target_type", "Type"),
    Filter("target_id", "Row's id"),
)


@page("/audit", also_of_tenant=True)
def list_audit(tenant_id: UUID | None = None) -> Shown:
    listing = list_rows(PATH, FILTERS, tenant_id=tenant_id, include="tenant,actor_name")
    query: dict[str, Json] = {"tenant_id": tenant_id, **listing.values}
    csv_url = url_for("console.download_audit", **query)
    return render("audit", "Audit", listing=listing, csv_url=csv_url)


@page("/audit.csv", also_of_tenant=True)
def download_audit(tenant_id: UUID | None = None) -> Shown:
    """Download the newest recorded changes that the filters in the URL choose."""
    values = {**filter_values(FILTERS), "order": "-created_at", "limit": LINES}
    answer = api.get(f"{PATH}/csv", tenant_id=tenant_id, **values)
    return Response(
        answer.text,
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="audit.csv"'},
    )

"""The audit trail: who changed what, with the values before and after."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from flask import url_for

from app.console import api
from app.console.blueprint import Shown, page, render
from app.console.lists import (
    LINES,
    Filter,
    Listing,
    csv_file,
    documented_choices,
    filter_values,
    list_rows,
    query_values,
)

PATH = "/v1/audit-events"
FILTERS = (
    Filter("action", "Action", partial(documented_choices, PATH, "action")),
    Filter("actor", "Who", kind="row", types="user"),
    Filter("target_type", "Type", partial(documented_choices, PATH, "target_type")),
    Filter("target_id", "Row", kind="row", types="tenant,user,subscription"),
    Filter("created_after", "From", kind="date"),
    Filter("created_before", "To", kind="date"),
)


@page("/audit", also_of_tenant=True)
def list_audit(tenant_id: UUID | None = None) -> Shown:
    listing = list_rows(PATH, FILTERS, tenant_id=tenant_id, include="tenant,actor_name")
    shown = {**listing.values, "zone": listing.zone or None}
    csv_url = url_for("console.download_audit", tenant_id=tenant_id, **shown)
    return render("audit", "Audit", listing=listing, csv_url=csv_url)


@page("/audit.csv", also_of_tenant=True)
def download_audit(tenant_id: UUID | None = None) -> Shown:
    """Download the newest recorded changes that the filters in the URL choose."""
    values = query_values(Listing(FILTERS, filter_values(FILTERS)))
    query = {**values, "order": "-created_at", "limit": LINES, "tenant_id": tenant_id}
    return csv_file(api.get(f"{PATH}/csv", **query).text, "audit")

"""The audit trail: who changed what, with the values before and after."""

from __future__ import annotations

from functools import partial

from app.console.lists import Filter, documented_choices, list_page

PATH = "/v1/audit-events"
FILTERS = (
    Filter("action", "Action", partial(documented_choices, PATH, "action")),
    Filter("actor", "Who", kind="row", types="user"),
    Filter("target_type", "Type", partial(documented_choices, PATH, "target_type")),
    Filter("target_id", "Row", kind="row", types="tenant,user,subscription"),
    Filter("created_after", "From", kind="date"),
    Filter("created_before", "To", kind="date"),
)
INCLUDED = "tenant,actor_name,target_name"
COLUMNS = "created_at tenant.name actor actor_name action target_id before after request_id"

list_page("/audit", "audit", "Audit", PATH, COLUMNS, FILTERS, also_of_tenant=True, include=INCLUDED)

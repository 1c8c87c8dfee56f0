"""Operations: whether the service can answer, its queues and workers, and what checks find."""

from __future__ import annotations

from werkzeug.exceptions import Forbidden

from app.console import api
from app.console.access import current_session
from app.console.blueprint import Shown, page, render

# A check -> the list of what it finds, and its filter.
LISTS: dict[str, tuple[str, dict[str, str]]] = {
    "webhook endpoints": ("list_endpoints", {"is_failing": "true"}),
    "limits": ("list_tenants", {"is_at_limit": "true"}),
    "plans": ("list_plans", {}),
    "billing events": ("show_billing", {}),
}


@page("/operations")
def show_operations() -> Shown:
    """Show what /readyz checks, the queues, the workers, and the findings, faults first."""
    if not current_session().is_platform:
        raise Forbidden
    queues = api.call("GET", "/v1/operations/queues")
    findings = api.get("/v1/operations/findings").data
    return render(
        "operations",
        "Operations",
        ready=api.call("GET", "/readyz").body,
        queues=queues.data if queues.is_ok else None,
        lists=LISTS,
        findings=sorted(findings, key=lambda one: (one["ok"], not one["fix"])),
    )

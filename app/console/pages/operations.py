"""Operations: whether the service can answer, its queues and workers, and what checks find."""

from __future__ import annotations

from flask import render_template
from werkzeug.exceptions import Forbidden

from app.console import api
from app.console.access import current_session, signed_in
from app.console.blueprint import console


@console.get("/operations")
@signed_in
def show_operations() -> str:
    """Show what /readyz checks, the queues, the workers, and the findings, faults first."""
    if not current_session().is_platform:
        raise Forbidden
    ready = api.call("GET", "/readyz")
    queues = api.call("GET", "/v1/operations/queues")
    findings = api.get("/v1/operations/findings").data
    return render_template(
        "console/operations.html",
        title="Operations",
        ready=ready.body,
        queues=queues.data if queues.is_ok else None,
        findings=sorted(findings, key=lambda one: (one["ok"], not one["fix"])),
    )

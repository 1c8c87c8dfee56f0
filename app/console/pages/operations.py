"""Operations: whether the service can answer, and what it depends on."""

from __future__ import annotations

from flask import render_template
from werkzeug.exceptions import Forbidden

from app.console import api
from app.console.access import current_session, signed_in
from app.console.blueprint import console


@console.get("/operations")
@signed_in
def show_operations() -> str:
    """Show what /readyz checks."""
    if not current_session().is_platform:
        raise Forbidden
    answer = api.call("GET", "/readyz")
    return render_template("console/operations.html", title="Operations", ready=answer.body)

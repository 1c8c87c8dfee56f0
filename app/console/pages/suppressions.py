"""Suppressions: the addresses that no e-mail is sent to, and why."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from flask import render_template, request, url_for
from werkzeug.exceptions import NotFound

from app.console import api
from app.console.access import signed_in
from app.console.blueprint import console
from app.console.forms import Form, choices
from app.console.lists import Filter, list_rows

FILTERS = (
    Filter("address", "Address"),
    Filter("cause", "Cause", choices("bounced", "complained", "unsubscribed")),
)
PATH = "/v1/app-communications/suppressions"


@console.get("/suppressions")
@signed_in
def list_suppressions() -> str:
    """List suppressed addresses."""
    return render_template(
        "console/suppressions.html", title="Suppressions", listing=list_rows(PATH, FILTERS)
    )


@console.route("/suppressions/remove", methods=["GET", "POST"])
@signed_in
def remove_suppression() -> Any:
    """Remove the address in the query from the list."""
    address = request.args.get("address", "")
    if not address:
        raise NotFound
    back = url_for("console.list_suppressions")
    form = Form(
        "Remove the suppression",
        intro=f"E-mail can be sent to {address} again.",
        submit="Remove",
        is_dangerous=True,
        confirmation=address,
        back=back,
    )
    return form.run(
        lambda *_: api.call("DELETE", f"{PATH}/{quote(address, safe='')}"),
        done="The suppression was removed.",
        to=back,
    )

"""Suppressions: the addresses that no e-mail is sent to, and why."""

from __future__ import annotations

from urllib.parse import quote

from flask import request
from werkzeug.exceptions import NotFound

from app.console.blueprint import Shown, form_page, page
from app.console.fields import choices
from app.console.forms import Form
from app.console.lists import DATES, Filter, list_rows, show_list

FILTERS = (
    Filter("address", "Address"),
    Filter("cause", "Cause", choices("bounced", "complained", "unsubscribed")),
    *DATES,
)
COLUMNS = "address cause scope source suppressed_at"
PATH = "/v1/app-communications/suppressions"


@page("/suppressions")
def list_suppressions() -> Shown:
    return show_list("suppressions", "Suppressions", list_rows(PATH, FILTERS), COLUMNS)


@form_page("/suppressions/remove")
def remove_suppression() -> Shown:
    address = request.args.get("address", "")
    if not address:
        raise NotFound
    form = Form(
        "Remove the suppression",
        intro=f"E-mail can be sent to {address} again.",
        confirmation=address,
    )
    path = f"{PATH}/{quote(address, safe='')}"
    return form.send("DELETE", path, done="The suppression was removed.")

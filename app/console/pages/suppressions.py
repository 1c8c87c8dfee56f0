"""Suppressions: the addresses that no e-mail is sent to, and why."""

from __future__ import annotations

from urllib.parse import quote

from flask import request
from werkzeug.exceptions import NotFound

from app.console.blueprint import Shown, form_page
from app.console.fields import choices
from app.console.forms import Form
from app.console.lists import DATES, Filter, list_page

FILTERS = (
    Filter("address", "Address"),
    Filter("cause", "Cause", choices("bounced", "complained", "unsubscribed")),
    *DATES,
)
COLUMNS = "address cause scope source suppressed_at"
PATH = "/v1/app-communications/suppressions"

list_page("/suppressions", "suppressions", "Suppressions", PATH, COLUMNS, FILTERS)


@form_page("/suppressions/remove")
def remove_suppression() -> Shown:
    address = request.args.get("address", "")
    if not address:
        raise NotFound
    intro = f"E-mail can be sent to {address} again."
    form = Form("Remove the suppression", intro=intro, confirmation=address)
    path = f"{PATH}/{quote(address, safe='')}"
    return form.send("DELETE", path, done="The suppression was removed.")

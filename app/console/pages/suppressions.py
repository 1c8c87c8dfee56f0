"""Suppressions: the addresses that no e-mail is sent to, and why."""

from __future__ import annotations

from urllib.parse import quote

from flask import request
from werkzeug.exceptions import NotFound

from app.console.blueprint import Shown, form_page, page, render
from app.console.forms import Form, choices
from app.console.lists import Filter, list_rows

FILTERS = (
    Filter("address", "Address"),
    Filter("cause", "Cause", choices("bounced", "complained", "unsubscribed")),
)
PATH = "/v1/app-communications/suppressions"


@page("/suppressions")
def list_suppressions() -> Shown:
    return render("suppressions", "Suppressions", listing=list_rows(PATH, FILTERS))


@form_page("/suppressions/remove")
def remove_suppression() -> Shown:
    address = request.args.get("address", "")
    if not address:
        raise NotFound
    form = Form(
        "Remove the suppression",
        intro=f"E-mail can be sent to {address} again.",
        submit="Remove",
        is_dangerous=True,
        confirmation=address,
    )
    path = f"{PATH}/{quote(address, safe='')}"
    return form.send("DELETE", path, done="The suppression was removed.")

"""Imports: send a file of tenants, people and more, follow it, and see what it made."""

from __future__ import annotations

from uuid import UUID

from flask import request

from app.console import api
from app.console.blueprint import Shown, console, form_page, page, render
from app.console.fields import Field, Sent, choices
from app.console.forms import Form
from app.console.lists import DATES, Filter, list_rows, show_list
from app.console.next_page import Notice
from app.core.http.body_limits import allow_body, body_limit
from app.core.json_text import Json

STATES = choices("pending", "running", "completed", "failed")
FILTERS = (Filter("state", "State", STATES), *DATES)
COLUMNS = (
    "id created_at created_by_user_id state size lines_total lines_done lines_failed error"
    " finished_at"
)
PATH = "/v1/imports"


class FileField(Field):
    """A file, whose bytes are the body of the request."""

    def read(self, form: Sent) -> Json:
        """The content of the file; raises ValueError without a ``scim_type``."""
        sent = request.files.get(self.name)
        content = sent.read() if sent else b""
        if not content:
            raise ValueError("Choose a file that is not empty.")
        return content

    def shown(self, value: Json) -> Json:
        """Nothing: a browser fills in no file."""
        return ""


FILE = FileField("file", "File", "file", "JSON Lines in UTF-8, at most 50 MB.", is_required=True)


@console.record_once
def _configure(_: object) -> None:
    allow_body("/console/imports/new", body_limit(PATH))


@page("/imports")
def list_imports() -> Shown:
    listing = list_rows(PATH, FILTERS)
    is_underway = any(row["finished_at"] is None for row in listing.rows)
    return show_list("imports", "Imports", listing, COLUMNS, is_underway=is_underway)


@form_page("/imports/new")
def create_import() -> Shown:
    form = Form(
        "New import", (FILE,), submit="Import", template="import_form", preview_label="Check only"
    )
    return form.send(
        "POST",
        PATH,
        preview=f"{PATH}/check",
        body=lambda values: values["file"],
        done="The file was sent. Its lines are applied in their order.",
        to=lambda answer: f"{form.back}/{answer.data['id']}",
    )


@page("/imports/<uuid:import_id>")
def show_import(import_id: UUID) -> Shown:
    found = api.get(f"{PATH}/{import_id}").data
    is_underway, outcome = found["finished_at"] is None, _outcome(found)
    return render("import", "Import", found=found, is_underway=is_underway, outcome=outcome)


def _outcome(found: Json) -> Notice:
    """The sentence that the page of an import shows at its end."""
    failed, lines = found["lines_failed"], f"{found['lines_total']:,} lines"
    if found["state"] == "failed":
        return Notice("The import ended before its last line.", is_bad=True)
    if failed:
        return Notice(f"{failed:,} of {lines} failed. They are listed below.", is_bad=True)
    return Notice(f"All {lines} were applied.")

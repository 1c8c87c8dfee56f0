"""Log streams of a tenant or of the platform: targets, how far each has come, tests, rewinding."""

from __future__ import annotations

from urllib.parse import quote
from uuid import UUID

from flask import request
from werkzeug.exceptions import NotFound

from app.console import api
from app.console.access import current_session
from app.console.blueprint import Shown, form_page, page, render
from app.console.fields import Field, choices
from app.console.forms import Form, row_form
from app.console.lists import DATES, Filter, list_page
from app.console.pages.common import choose, recent_history, tenant_slug
from app.console.pages.endpoints import CHANGEABLE
from app.core.errors import Conflict
from app.core.json_text import Json

PATH, STREAM = "/v1/log-streams", "/log-streams/<uuid:stream_id>"
COLUMNS = "id kind tenant.name types state error progress.written_until description created_at"
FORMAT = Field("format", "Format", "select", "", choices("native", "ocsf"), is_required=True)
FROM = "beginning, now, a time such as 2026-01-31T12:00:00Z, or the position of an event."
PLACE = Field("from", "From", help=FROM, is_required=True)
DONE = {
    "test": "A marked record is being written.",
    "pause": "The stream is paused.",
    "resume": "The stream goes on.",
}

FILTERS = (Filter("state", "State", choices("active", "paused", "error", "invalid")), *DATES)
LIST = ("/log-streams", "log_streams", "Log streams", PATH, COLUMNS, FILTERS)
list_page(*LIST, also_of_tenant=True, include="tenant,progress")


def kinds() -> Json:
    """The settings of each kind, as the API's document describes them."""
    schemas = api.get_once("/openapi.json").body["components"]["schemas"]
    return schemas["LogStreamCreate"]["properties"]["config"]["x-kinds"]


KIND = Field("kind", "Kind", "select", choices=lambda: choices(*kinds()), is_required=True)


def send_new(title: str, kind: str, *, submit: str, tenant_id: UUID | None = None) -> Shown:
    """The form of a new stream, which is paused."""
    if kind not in (found := kinds()):
        raise NotFound
    fields = [_field(setting) for setting in found[kind]]

    def body(values: Json) -> Json:
        given = {one.name: values.pop(one.name, "") for one in fields}
        config = {name: value for name, value in given.items() if value != ""}
        return {**values, "kind": kind, "config": config, "state": "paused"}

    values = {"types": ["*"], "format": "native"}
    form = Form(title, (*fields, *CHANGEABLE[1:], FORMAT), values=values, submit=submit)
    form.back = form.above
    return form.send("POST", PATH, query={"tenant_id": tenant_id}, body=body, to=form.new_row)


def _field(setting: Json) -> Field:
    kind = "select" if "enum" in setting else "password" if setting["secret"] else "text"
    kind = "json" if "additionalProperties" in setting else kind
    about = (setting.get("description", ""), choices(*setting.get("enum", ())))
    label = setting["name"].replace("_", " ").capitalize()
    return Field(setting["name"], label, kind, *about, is_required=setting["required"])


def new_page(kind: Json) -> str:
    """The page of the form for a kind, below the page that asks for it."""
    return f"{request.path}/{quote(kind, safe='')}"


@page("/log-streams/new", also_of_tenant=True)
def choose_log_stream(tenant_id: UUID | None = None) -> Shown:
    return choose("New log stream", KIND, new_page)


@form_page("/log-streams/new/<kind>", also_of_tenant=True)
def create_log_stream(kind: str, tenant_id: UUID | None = None) -> Shown:
    if tenant_id is None and current_session().claims.org_id is not None:
        raise Conflict("Sign in without an organization to create a log stream of the platform.")
    return send_new("New log stream", kind, submit="Create", tenant_id=tenant_id)


@page(STREAM, also_of_tenant=True)
def show_log_stream(stream_id: UUID, tenant_id: UUID | None = None) -> Shown:
    stream = find_stream(stream_id)
    values = {"history": recent_history(f"{PATH}/{stream_id}"), "is_underway": is_tested(stream)}
    return render("log_stream", stream["description"] or stream["kind"], stream=stream, **values)


def find_stream(stream_id: UUID) -> Json:
    return api.get(f"{PATH}/{stream_id}", include="progress").data


def is_tested(stream: Json) -> bool:
    """Whether the test that led to this page is not over."""
    return request.args.get("tested") == str(stream["progress"]["tested_at"])


@form_page(f"{STREAM}/<any(test, pause, resume):action>", also_of_tenant=True)
def change_log_stream(stream_id: UUID, action: str, tenant_id: UUID | None = None) -> Shown:
    form = row_form(PATH, stream_id, action.capitalize())
    tested = find_stream(stream_id)["progress"]["tested_at"]
    to = f"{form.back}?tested={tested}" if action == "test" else ""
    return form.send("POST", f"/{action}", done=DONE[action], to=to)


@form_page(f"{STREAM}/rewind", also_of_tenant=True)
def rewind_log_stream(stream_id: UUID, tenant_id: UUID | None = None) -> Shown:
    intro = "Events that were written before are written again."
    form = row_form(PATH, stream_id, "Rewind", intro, (PLACE,))
    return form.send("POST", "/rewind", done="The stream goes on at this place.")


@form_page(f"{STREAM}/delete", also_of_tenant=True)
def delete_log_stream(stream_id: UUID, tenant_id: UUID | None = None) -> Shown:
    typed = tenant_slug if tenant_id else "platform"
    intro = "Nothing is written there any more. What was written stays."
    form = row_form(PATH, stream_id, "Delete the log stream", intro, confirmation=typed)
    return form.send("DELETE", done="The log stream was deleted.", to=form.above)

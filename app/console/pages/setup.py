"""Opening a setup link, and the overview of its tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from flask import make_response, redirect, render_template, request, url_for
from werkzeug.exceptions import NotFound

from app.auth.guard import public
from app.console import api
from app.console.access import begin_setup, check_origin, csrf_token, resume_setup
from app.console.blueprint import Shown, console, page, render
from app.core.http.endpoint import Guarded
from app.core.http.rate_limit import rate_limits
from app.core.http.request import current_request
from app.core.json_text import Json

ENDED = "This link has ended, or another browser has opened it."


class Task(NamedTuple):
    """A task: where the API lists what it has created, the key of a row's name, and a title."""

    path: str
    shown: str
    title: str


TASKS = {
    "scim": Task("/v1/scim-connections", "name", "Connect your directory"),
    "domains": Task("/v1/domains", "display_name", "Verify your domains"),
    "sso": Task("/v1/sso-connections", "name", "Set up single sign-on"),
    "webhook-endpoints": Task("/v1/webhook-endpoints", "url", "Receive events"),
    "log-streams": Task("/v1/log-streams", "kind", "Stream events to your SIEM"),
}
"""The tasks by their places below /console/setup."""
STATES = {
    "active": ("done", "good"),
    "waits": ("waits for its test", "warn"),
    "failed": ("failed", "bad"),
    "off": ("switched off", "bad"),
    "none": ("not begun", ""),
}


def setup_page(path: str, *methods: str) -> Callable[[Callable[..., Shown]], Guarded]:
    """Show a view at ``path`` below /console/setup to people who have opened a setup link."""
    return page(f"/setup{path}", methods=methods or ("GET",), is_setup=True)


@console.get("/setup/open")
@public
def confirm_setup_link() -> Shown:
    """Ask before a link is opened, because browsers and mail programs open links by themselves."""
    token = request.args.get("token", "")
    return resume_setup(redirect(url_for("console.setup"), 303), token) or _open_page(token)


@console.post("/setup/open")
@public
def open_setup_link() -> Shown:
    """Open a link, which no other browser can from now on."""
    token = request.form.get("token", "")
    check_origin(token)
    response = begin_setup(redirect(url_for("console.setup"), 303), token)
    if response is None:
        rate_limits().count_failed_authentication(current_request())
        return make_response(_open_page("", ENDED), 403)
    return response


@setup_page("")
def setup() -> Shown:
    found = [(name, api.find(TASKS[name].path, limit=api.MOST_OF_A_PAGE)) for name in TASKS]
    states = {name: badge_of(*answer.data) for name, answer in found if answer}
    return render("setup", "Set up", tasks=TASKS, states=states)


@setup_page("/<path:rest>")
def unknown_setup_page(rest: str) -> Shown:
    raise NotFound


def state_of(row: Json) -> str:
    """How far a row of a task is, one of :data:`STATES`."""
    state = row.get("status") or row.get("state")
    if state in ("active", "verified") or row.get("is_active"):
        return "active"
    if (
        state in ("testing", "pending", "draft", "paused")
        or row.get("disabled_reason") == "untested"
    ):
        return "waits"
    return "failed" if state in ("failed", "lapsed", "error", "invalid") else "off"


def badge_of(*rows: Json) -> tuple[str, str]:
    """The badge of the row that is furthest."""
    states = {"none", *map(state_of, rows)}
    return next(badge for state, badge in STATES.items() if state in states)


def _open_page(token: str, problem: str = "") -> str:
    values = {"token": token, "problem": problem, "link_csrf_token": csrf_token(token)}
    return render_template("console/setup_open.html", title="Set up", **values)

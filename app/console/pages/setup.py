"""The pages of a setup link: the way in, and its tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from flask import make_response, redirect, render_template, request, url_for

from app.auth.guard import public
from app.auth.permissions import Permission
from app.console.access import (
    begin_setup,
    check_origin,
    csrf_token,
    current_session,
    is_set_up_here,
    setting_up,
)
from app.console.blueprint import Shown, console, render
from app.core.http.rate_limit import rate_limits
from app.core.http.request import current_request

ENDED = "This link has ended, or another browser has opened it."


class Task(NamedTuple):
    """A task of the overview. ``state`` is a badge's text and kind."""

    url: str
    title: str
    text: str
    state: tuple[str, str]


@console.get("/setup/open")
@public
def confirm_setup_link() -> Shown:
    """Ask before a link is opened, because browsers and mail programs open links by themselves."""
    token = request.args.get("token", "")
    if token and is_set_up_here(token):
        return redirect(url_for("console.setup"), 303)
    return _open_page(token)


@console.post("/setup/open")
@public
def open_setup_link() -> Shown:
    """Open a link, which no other browser can from now on."""
    token = request.form.get("token", "")
    check_origin(token)
    response = begin_setup(redirect(url_for("console.setup"), 303), token)
    if response is None:
        rate_limits().count_failed_authentication(current_request())
        return make_response(_open_page("", problem=ENDED), 403)
    return response


@console.get("/setup")
@setting_up
def setup() -> Shown:
    tasks = [task() for permission, task in TASKS if current_session().can(permission)]
    return render("setup", "Set up", tasks=tasks)


def _open_page(token: str, problem: str = "") -> str:
    return render_template(
        "console/setup_open.html",
        title="Set up",
        token=token,
        problem=problem,
        link_csrf_token=csrf_token(token),
    )


def _scim() -> Task:
    return Task(
        url_for("console.setup"),
        "Directory",
        "People come and go with your directory.",
        ("not begun", ""),
    )


def _endpoints() -> Task:
    return Task(
        url_for("console.setup"), "Events", "Your systems hear of changes.", ("not begun", "")
    )


TASKS: tuple[tuple[Permission, Callable[[], Task]], ...] = (
    (Permission.SCIM_READ, _scim),
    (Permission.EVENTS_READ, _endpoints),
)

"""The blueprint of the pages, what every template can use, and the page of an error."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import TypeAlias
from urllib.parse import urlencode

import psycopg2
from flask import Blueprint, Response, g, make_response, render_template, request, url_for
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as AnyResponse

from app.config import current_config
from app.console import access, next_page, words
from app.console.api import Answer, Refused, find, get_tenant
from app.console.assets import asset_url
from app.console.brand import brand
from app.console.navigation import actions, navigation, tenant_tabs
from app.core.errors import AppError, DatabaseUnavailable
from app.core.http.endpoint import Guarded

console = Blueprint("console", __name__, url_prefix="/console", template_folder="templates")
console.before_request(access.admit)
console.after_request(next_page.forget_notice)
console.after_request(next_page.remember_change)
console.after_request(access.add_headers)

Shown: TypeAlias = str | tuple[str, int] | AnyResponse  # what a page's view returns

TENANT = "/tenants/<uuid:tenant_id>"
MOST_QUESTIONS = 30  # of a page that follows something
LONGEST_DELAY = 30  # seconds between them
MESSAGES = {
    401: "You are no longer signed in.",
    403: "Your role does not allow this.",
    404: "There is nothing here, or nothing that you may see.",
    405: "This page cannot be used in this way.",
    429: "Too many requests. Wait a moment and load the page again.",
    503: "The service cannot answer at the moment. Load the page again.",
}


def page(
    path: str,
    *,
    also_of_tenant: bool = False,
    methods: tuple[str, ...] = ("GET",),
    is_setup: bool = False,
) -> Callable[[Callable[..., Shown]], Guarded]:
    """Show a view at ``path`` to people who are signed in, or who have opened a setup link.

    With ``also_of_tenant`` it is shown below the address of a tenant too, with its ``tenant_id``.
    """

    def register(view: Callable[..., Shown]) -> Guarded:
        shown = access.SignedIn(is_setup=is_setup)(view)
        for rule in (path, TENANT + path) if also_of_tenant else (path,):
            console.add_url_rule(rule, view_func=shown, methods=methods)
        return shown

    return register


form_page = partial(page, methods=("GET", "POST"))
"""As :func:`page`, for a page that sends its form to itself."""


def render(template: str, title: str, **values: object) -> str:
    """A page; its ``tenant`` is that of the address."""
    tenant_id = (request.view_args or {}).get("tenant_id")
    if tenant_id is not None and "tenant" not in values:
        values["tenant"] = get_tenant(tenant_id).data
    return render_template(f"console/{template}.html", title=title, **values)


@console.app_context_processor
def _shared() -> dict[str, object]:
    return {
        "session": g.get("session"),
        "can": lambda permission: bool(g.get("session") and g.session.can(permission)),
        "asset_url": asset_url,
        "csrf_token": lambda: access.csrf_token(g.session.secret) if g.get("session") else "",
        "navigation": navigation,
        "actions": actions,
        "signed_in_as": _signed_in_as,
        "console_name": current_config().console_name,
        "brand": brand,
        "environment_name": current_config().environment_name,
        "tenant_tabs": tenant_tabs,
        "take_notice": _take_notice,
        "new_form_key": lambda: secrets.token_urlsafe(16),
        "words": words,
        "moment": words.moment,
        "pretty": words.pretty,
        "differences": words.differences,
        "is_fragment": "HX-Request" in request.headers
        and "HX-History-Restore-Request" not in request.headers,
        "next_question": _next_question,
    }


def _signed_in_as() -> str:
    """The name of the person who is signed in; for superadmins the subject."""
    session = access.current_session()
    person = session.principal
    found = find(f"/v1/users/{person.actor.id}") if person and not person.is_platform else None
    return words.person(found.data) if found else session.claims.subject


def _next_question() -> tuple[str, int] | None:
    """Where a page that follows something asks again, and in how many seconds; None: no more."""
    asked = request.args.get("asked", 0, int)
    if not 0 <= asked < MOST_QUESTIONS or request.method != "GET":
        return None
    query = urlencode({**request.args, "asked": asked + 1})
    return f"{request.path}?{query}", min(2 ** (asked // 2), LONGEST_DELAY)


def _take_notice() -> next_page.Notice | None:
    notice = next_page.take_notice()
    g.notice_is_shown = notice is not None
    return notice


def _refused(error: Refused) -> Response:
    return _error_page(error.answer.status, error.answer)


def _failed(error: Exception) -> Response:
    if isinstance(error, HTTPException):
        return _error_page(error.code or 500, None)
    known = error if isinstance(error, AppError) else DatabaseUnavailable()
    response = _error_page(known.status, Answer(known.status, known.body()))
    response.headers.update(known.headers)
    return response


def _error_page(status: int, answer: Answer | None) -> Response:
    is_setup = f"{request.path}/".startswith("/console/setup/")
    detail = answer.detail if answer else ""
    text = detail if is_setup and status == 403 else MESSAGES.get(status, detail)
    page = render_template(
        "console/error.html",
        title=HTTPStatus(status).phrase,
        status=status,
        text=text or HTTPStatus(status).phrase,
        detail=detail,
        is_setup=is_setup,
        code=answer.code if answer else "",
        home=url_for("console.setup" if is_setup else "console.search"),
    )
    return make_response(page, status)


console.register_error_handler(Refused, _refused)
console.register_error_handler(404, _failed)  # the application has its own handler for this status
_handler: Callable[[Exception], Response] = _failed
for kind in (
    AppError,
    HTTPException,
    psycopg2.OperationalError,
    psycopg2.InterfaceError,
    PoolTimeout,
):
    console.register_error_handler(kind, _handler)

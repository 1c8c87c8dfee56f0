"""What a page leaves in a cookie for the next page: a notice, the ``X-Consistency`` of a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field, replace

from flask import Response, g, request
from itsdangerous import BadData, URLSafeSerializer
from werkzeug.wrappers import Response as AnyResponse

from app.console.cookies import cookie_name, set_cookie
from app.core.db.replicas import reading

MOST_OF_NOTICE = 3_900  # characters; browsers drop a cookie of more than 4,096 bytes
CHANGE_SECONDS = 600  # more than the largest REPLICA_MAX_LAG


@dataclass(frozen=True)
class Notice:
    """A message about a change, and the form that makes the opposite change, if there is one."""

    text: str
    undo: str = ""  # the address of the page that takes the form
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)  # of the form's inputs
    is_bad: bool = False


def set_notice(response: AnyResponse, notice: str | Notice) -> AnyResponse:
    """Let the next page say what has happened. The cookie is signed, so nobody else can make one.

    Values that are too long for a cookie are left out, and with them the way to undo. A notice
    without a text is not shown.
    """
    told = Notice(notice) if isinstance(notice, str) else notice
    if not told.text:
        return response
    told = replace(told, text=told.text[:500])
    value = _signer().dumps(astuple(told))
    if len(value) > MOST_OF_NOTICE:
        value = _signer().dumps(astuple(replace(told, undo="", values={})))
    set_cookie(response, f"{cookie_name()}-notice", value, 60)
    return response


def take_notice() -> Notice | None:
    """The notice that :func:`set_notice` left for this page."""
    with suppress(BadData):
        return Notice(*_signer().loads(request.cookies.get(f"{cookie_name()}-notice", "")))
    return None


def forget_notice(response: Response) -> Response:
    if g.get("notice_is_shown"):
        set_cookie(response, f"{cookie_name()}-notice", "", 0)
    return response


def note_change(token: str) -> None:
    """Remember the API's token of a change, if there is one, for this page and the next pages."""
    if token:
        g.last_change = token


def last_change() -> str:
    """The token of this browser's last change; an empty text if there is none."""
    token: str = g.get("last_change") or request.cookies.get(f"{cookie_name()}-change", "")
    return token if reading.position_of(token) is not None else ""


def remember_change(response: Response) -> Response:
    """Store the token of a change in this browser until every replica has the change."""
    if "last_change" in g:
        set_cookie(response, f"{cookie_name()}-change", g.last_change, CHANGE_SECONDS)
    return response


def _signer() -> URLSafeSerializer:
    """Signs with the secret of this browser's session; with an empty text if there is none."""
    return URLSafeSerializer(g.session.secret if g.get("session") else "", "notice")

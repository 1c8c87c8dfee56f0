"""Calls of the service's own API, in process, as the person who is signed in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID
from zlib import crc32

from flask import current_app, g, request

from app.auth.guard import CLAIMS, PAGE_TENANT
from app.console.next_page import last_change, note_change
from app.core.db.replicas import reading
from app.core.http import idempotency
from app.core.http.rate_limit import IS_COUNTED
from app.core.json_text import Json
from app.core.observability.logs import current_request_id
from app.surfaces.in_process import InProcess
from app.surfaces.operations import Request, as_text

MOST_OF_A_PAGE = 100  # rows that the API sends at once
FORM_KEY = "form_key"  # the form's input
KEY = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
TAG = re.compile(r'"[!#-~]{1,128}"')

Query = Mapping[str, object]


@dataclass(frozen=True)
class Answer:
    """An answer of the API."""

    status: int
    body: Json  # None for an answer without JSON
    etag: str = ""

    @property
    def is_ok(self) -> bool:
        return self.status < 400

    @property
    def data(self) -> Json:
        return self.body["data"]

    @property
    def code(self) -> str:
        return str(self._error.get("code", ""))

    @property
    def detail(self) -> str:
        """The sentence of an error, or an empty text."""
        detail = self._error.get("detail", "")
        return detail if isinstance(detail, str) else ""

    @property
    def entries(self) -> list[dict[str, Json]]:
        """The entries of a 422."""
        detail = self._error.get("detail")
        return detail if isinstance(detail, list) else []

    @property
    def refusal(self) -> str:
        """Why it was refused, in sentences; an empty text where it was not."""
        messages = [entry["msg"] for entry in self.entries] or [self.detail or "Refused."]
        return "" if self.is_ok else " ".join(messages)

    @property
    def _error(self) -> Mapping[str, Json]:
        return self.body if not self.is_ok and isinstance(self.body, dict) else {}


class Refused(Exception):
    """The API refused a request that a page needs; the error's page says why."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.detail)
        self.answer = answer


def call(
    method: str, path: str, *, query: Query | None = None, body: Json = None, if_match: str = ""
) -> Answer:
    """Send one request; values of the query that are None are left out.

    The key of the form that is posted makes the same form have one effect at each path, sent once
    or twice.
    What this browser has changed is in the answers of later reads. A page below a tenant's address
    reaches rows of this tenant only. The request runs in an empty context: it has its own log
    facts, transaction and ``flask.g``.
    """
    headers = {"X-Request-Id": current_request_id()}
    if token := last_change():
        headers[reading.HEADER] = token
    if if_match:
        headers["If-Match"] = if_match if TAG.fullmatch(if_match) else '"unknown"'
    key = request.form.get(FORM_KEY, "")
    if method in idempotency.METHODS and KEY.fullmatch(key):
        headers["Idempotency-Key"] = f"{key}-{crc32(path.encode())}"
    if isinstance(body, bytes):
        headers["Content-Type"] = "application/x-ndjson"
    given = {name: as_text(value) for name, value in (query or {}).items() if value is not None}
    environ = {
        CLAIMS: g.session.claims,
        PAGE_TENANT: (request.view_args or {}).get("tenant_id"),
        IS_COUNTED: True,
        "REMOTE_ADDR": request.remote_addr or "",
    }
    send = InProcess(current_app.wsgi_app, environ)
    answer = send(Request(method, path, given, headers, body))
    note_change(answer.headers.get(reading.HEADER, ""))
    lacks = answer.headers.get("X-As-Of-Incomplete", "").split(",")
    g.lacks = {*g.get("lacks", ()), *lacks}  # the names of what all answers of this page lack
    return Answer(answer.status, answer.body, answer.headers.get("ETag", ""))


def get(path: str, **query: object) -> Answer:
    """The answer of a GET; raises Refused for an error."""
    return succeeded(call("GET", path, query=query))


def find(path: str, **query: object) -> Answer | None:
    """The answer of a GET; None if there is no such thing, or the person may not read it."""
    answer = call("GET", path, query=query)
    return None if answer.status in (403, 404) else succeeded(answer)


def get_all(path: str, **query: object) -> list[Json]:
    """The rows of all pages of a list that is known to be short; raises Refused."""
    rows: list[Json] = []
    cursor = None
    while True:
        answer = get(path, **{**query, "limit": MOST_OF_A_PAGE, "cursor": cursor})
        rows += answer.data
        cursor = answer.body.get("next_cursor")
        if not cursor:
            return rows


def get_once(path: str) -> Answer:
    """A row that several parts of a page show, read once a page; raises Refused."""
    known: dict[str, Answer] = g.setdefault("rows", {})
    if path not in known:
        known[path] = get(path)
    return known[path]


def get_tenant(tenant_id: UUID) -> Answer:
    """The tenant whose page this is; raises Refused."""
    return get_once(f"/v1/tenants/{tenant_id}")


def succeeded(answer: Answer) -> Answer:
    """The answer itself; raises Refused for an error."""
    if not answer.is_ok:
        raise Refused(answer)
    return answer

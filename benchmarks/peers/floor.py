"""The floor: plain WSGI and prepared, hand-written SQL on psycopg2, under the service's server.

It counts requests for the rate limit in each process alone, which costs next to nothing.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl
from uuid import UUID

import orjson
import psycopg2
import psycopg2.extras
from psycopg2.extensions import connection, cursor

from benchmarks.peers import work
from benchmarks.peers.sql import STATEMENTS, Statement, updating
from benchmarks.peers.work import Refused

Environ = dict[str, Any]
Answer = tuple[list[tuple[str, str]], bytes]  # headers and body

DSN = os.environ["DATABASE_URL"].replace("+psycopg2", "")
CONNECTION_OPTIONS = "-c timezone=UTC -c statement_timeout=15s"
FLAGS = {"auto_renew", "send_email_receipts", "send_paper_receipts"}
TEXTS = {
    *("billing_address_line_1", "billing_city", "billing_state", "billing_zip"),
    *("billing_country", "billing_email", "billing_phone", "billing_contact_name"),
}

psycopg2.extras.register_default_json(globally=True, loads=orjson.loads)
psycopg2.extras.register_uuid()
local = threading.local()
counts: dict[int, Counter[str]] = {}
notifier = work.Notifier("floor")


class Headers:
    """A WSGI environment's request headers."""

    def __init__(self, environ: Environ) -> None:
        self._environ = environ

    def get(self, name: str, default: Any = None) -> Any:
        return self._environ.get("HTTP_" + name.upper().replace("-", "_"), default)


class Database:
    """This thread's connection in one transaction."""

    def __init__(self, session: connection, database: cursor) -> None:
        self._session, self._cursor = session, database

    def all(self, statement: Statement, values: dict[str, Any]) -> list[dict[str, Any]]:
        """The rows; the connection prepares the statement at its first use."""
        prepared = local.prepared
        execution = prepared.get(statement.text)
        if execution is None:
            name = f"s{len(prepared)}"
            self._cursor.execute(f"PREPARE {name} AS {statement.text}")
            places = ", ".join("%s" for _ in statement.names)
            execution = prepared[statement.text] = f"EXECUTE {name} ({places})"
        self._cursor.execute(execution, [_adapted(values[name]) for name in statement.names])
        names = [column.name for column in self._cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in self._cursor]

    def one(self, statement: Statement, values: dict[str, Any]) -> dict[str, Any]:
        """The only row; raises Refused 404 where there is none."""
        rows = self.all(statement, values)
        if not rows:
            raise Refused(404, "Not Found")
        return rows[0]


def _adapted(value: Any) -> Any:
    return orjson.dumps(value).decode() if isinstance(value, dict) else value


def session() -> connection:
    """This thread's connection."""
    if not hasattr(local, "session"):
        local.session = psycopg2.connect(DSN, options=CONNECTION_OPTIONS)
        local.prepared = {}
    opened: connection = local.session
    return opened


def get_user(database: Database, who: Any, environ: Environ, user_id: str) -> Answer:
    values = {"tenant_id": who["tenant_id"], "id": uuid(user_id)}
    return answer(database.one(STATEMENTS["get_user"], values))


def list_users(database: Database, who: Any, environ: Environ) -> Answer:
    query = dict(parse_qsl(environ["QUERY_STRING"]))
    limit = query.get("limit", "50")
    if not limit.isdecimal() or not 1 <= int(limit) <= 100:
        raise Refused(422, [{"loc": ["query", "limit"]}])
    values = {"tenant_id": who["tenant_id"], "count": int(limit) + 1}
    statement = "list_users"
    for name, value in query.items():
        if name.startswith("meta_data."):
            field = database.one(STATEMENTS["find_field"], {**values, "key": name[10:]})
            if field["state"] != "ready":
                raise Refused(409, "The search index is not ready.")
            statement, values = (
                "search_users",
                {**values, "field_id": field["id"], "value": value},
            )
    return [], work.page(database.all(STATEMENTS[statement], values), int(limit))


def patch_meta_data(database: Database, who: Any, environ: Environ, user_id: str) -> Answer:
    patches = body_of(environ).get("patches")
    if not isinstance(patches, dict):
        raise Refused(422, [{"loc": ["body", "patches"]}])
    values = {"tenant_id": who["tenant_id"], "id": uuid(user_id)}
    row = database.one(STATEMENTS["lock_user"], values)
    after = {"meta_data": work.patched(row, patches)}
    return changed(database, who, environ, "users", row, {"meta_data": row["meta_data"]}, after)


def patch_role(database: Database, who: Any, environ: Environ, membership_id: str) -> Answer:
    role = dict(parse_qsl(environ["QUERY_STRING"])).get("role", "")
    if role not in work.RANKS:
        raise Refused(422, [{"loc": ["query", "role"]}])
    values = {"tenant_id": who["tenant_id"], "id": uuid(membership_id)}
    row = database.one(STATEMENTS["lock_membership"], values)
    work.check_role(role, row["role"], who["role"])
    return changed(
        database, who, environ, "memberships", row, {"role": row["role"]}, {"role": role}
    )


def patch_subscription(
    database: Database, who: Any, environ: Environ, subscription_id: str
) -> Answer:
    fields = {name: _checked(name, value) for name, value in body_of(environ).items()}
    values = {"tenant_id": who["tenant_id"], "id": uuid(subscription_id)}
    row = database.one(STATEMENTS["lock_subscription"], values)
    after = {name: value for name, value in fields.items() if row[name] != value}
    before = {name: row[name] for name in after}
    return changed(database, who, environ, "subscriptions", row, before, after)


def evaluate_flags(database: Database, who: Any, environ: Environ) -> Answer:
    if not isinstance(body_of(environ).get("context", {}), dict):
        raise Refused(400, "INVALID_CONTEXT")
    row = database.one(STATEMENTS["flags"], {"tenant_id": who["tenant_id"]})
    body = work.evaluated(row)
    return [("ETag", work.etag_of(body))], body


def receive(environ: Environ) -> Answer:
    body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
    row = work.inbox_row("floor", Headers(environ), body)
    with session() as transaction, transaction.cursor() as opened:
        stored = Database(transaction, opened).all(STATEMENTS["store_event"], row)
    if stored and notifier.is_due():
        notifier.notify()
    return [], work.receipt(row["id"], duplicate=not stored)


ROUTES = [
    ("GET", re.compile(r"/v1/users/([^/]+)"), "users:read", get_user),
    ("GET", re.compile(r"/v1/users"), "users:read", list_users),
    ("PATCH", re.compile(r"/v1/users/([^/]+)/meta_data"), "users:write", patch_meta_data),
    (
        *("PATCH", re.compile(r"/v1/memberships/tenant/([^/]+)/role")),
        *("memberships:write", patch_role),
    ),
    (
        *("PATCH", re.compile(r"/v1/billing/subscriptions/([^/]+)")),
        *("billing:write", patch_subscription),
    ),
    ("POST", re.compile(r"/ofrep/v1/evaluate/flags"), "flags:read", evaluate_flags),
]


def app(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
    """The WSGI application."""
    try:
        status, (headers, body) = HTTPStatus.OK, dispatch(environ)
    except Refused as refused:
        status, headers = HTTPStatus(refused.status), []
        body = orjson.dumps({"detail": refused.detail})
    length = ("Content-Length", str(len(body)))
    start_response(
        f"{status.value} {status.phrase}", [("Content-Type", "application/json"), length, *headers]
    )
    return [body]


def dispatch(environ: Environ) -> Answer:
    """Find the handler and run it in one transaction, once the credential is found good."""
    method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
    if (method, path) == ("POST", "/webhooks/idp"):
        return receive(environ)
    for verb, pattern, permission, handler in ROUTES:
        if verb == method and (match := pattern.fullmatch(path)):
            claims = work.verified(environ.get("HTTP_AUTHORIZATION", ""))
            limits = count(claims)
            with session() as transaction, transaction.cursor() as opened:
                database = Database(transaction, opened)
                values = {"subject": claims.subject, "org_id": claims.org_id}
                who = database.one(STATEMENTS["authenticate"], values)
                work.authorize(who, permission)
                headers, body = handler(database, who, environ, *match.groups())
            return headers + limits, body
    raise Refused(404, "Not Found")


def count(claims: work.Claims) -> list[tuple[str, str]]:
    """Count the request in this process; the headers that say so."""
    now = time.time()
    minute = int(now // work.MINUTE)
    if minute not in counts:
        counts.clear()
        counts[minute] = Counter()
    counts[minute][claims.rate_key] += 1
    return work.rate_headers(counts[minute][claims.rate_key], now)


def changed(
    database: Database, who: Any, environ: Environ, table: str, row: Any, before: Any, after: Any
) -> Answer:
    """Store ``after`` and its audit row, unless nothing changes."""
    work.check_version(environ.get("HTTP_IF_MATCH"), row["version"])
    if not after:
        return answer(row)
    values = work.change(row, who, environ.get("HTTP_X_REQUEST_ID"), before, after)
    return answer(database.one(updating(table, tuple(after)), {**values, **after}))


def answer(row: dict[str, Any]) -> Answer:
    etag, body = work.resource(row)
    return [("ETag", etag)], body


def body_of(environ: Environ) -> dict[str, Any]:
    try:
        body = orjson.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
    except ValueError:
        raise Refused(400, "There was an error parsing the body") from None
    if not isinstance(body, dict):
        raise Refused(422, [{"loc": ["body"]}])
    return body


def uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Refused(404, "Not Found") from None


def _checked(name: str, value: Any) -> Any:
    """The value of a field that a tenant's credential may change; raises Refused 422."""
    if name in TEXTS:
        good = isinstance(value, str) and len(value) <= 255
    elif name in FLAGS:
        good = isinstance(value, bool)
    else:
        good = name == "send_invoice_days_before_due" and type(value) is int and 0 <= value <= 365
    if not good:
        raise Refused(422, [{"loc": ["body", name]}])
    return work.check_email(value) if name == "billing_email" else value

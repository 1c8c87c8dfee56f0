"""``Idempotency-Key``: a POST or PATCH that is sent again has one effect and one answer.

After the authentication, the request's transaction inserts the key. A second request with the same
key waits at the unique index until the first request's transaction ends. A 2xx answer is stored
with the key, and the second request gets the stored answer. After any other answer the key is
deleted, and the second request runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta

from flask import Response
from psycopg2.errors import LockNotAvailable
from sqlalchemy import JSON, BigInteger, LargeBinary, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.core.clock import utcnow
from app.core.db.models import Moment
from app.core.db.queries import delete_where, update_where
from app.core.db.statements import Statement
from app.core.errors import Conflict, Entry, Invalid, error, value_error
from app.core.http.request import Request
from app.extensions import Model

LIFETIME = timedelta(hours=24)
WAIT_SECONDS = 10
MAX_KEY_LENGTH = 255
MAX_BODY = 64 * 1024  # bytes of a stored answer's body; NOT_STORED is stored for a larger body
NOT_STORED = b'{"detail":"The request was done before. Its answer was too large to be stored."}'
METHODS = ("POST", "PATCH")
LOCATION = ("header", "idempotency-key")
DISTINGUISHING_HEADERS = ("If-Match", "X-Source-Timestamp", "Content-Type")
STORED_HEADERS = ("Content-Type", "ETag", "Location", "X-Plan-Unknown", "X-Update-Ignored")


class IdempotencyInProgress(Conflict):
    """The second request has waited :data:`WAIT_SECONDS`, and the first still runs."""

    code = "idempotency_in_progress"
    detail = "The first request with this Idempotency-Key is still running; try again in a moment."


class IdempotencyKey(Model):
    """A key and the stored answer. ``scope`` is a digest of credential, method and path."""

    __tablename__ = "idempotency_keys"

    scope: Mapped[str] = mapped_column(Text, primary_key=True)
    key: Mapped[str] = mapped_column(Text, primary_key=True)
    fingerprint: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(Moment, default=utcnow, index=True)
    status: Mapped[int | None] = mapped_column(BigInteger)
    headers: Mapped[dict[str, str] | None] = mapped_column(JSON)
    body: Mapped[bytes | None] = mapped_column(LargeBinary)


CLAIM = Statement(
    "idempotency_keys.claim",
    "INSERT INTO idempotency_keys AS used (scope, key, fingerprint, created_at)"
    " SELECT :scope, :key, :fingerprint, CAST(:now AS timestamptz)"
    " FROM set_config('lock_timeout', :limit, true) ON CONFLICT (scope, key) DO UPDATE"
    " SET fingerprint = excluded.fingerprint, created_at = excluded.created_at,"
    " status = NULL, headers = NULL, body = NULL WHERE used.created_at < :expired_before",
)
GET = Statement(
    "idempotency_keys.get",
    "SELECT fingerprint, status, headers, body FROM idempotency_keys"
    " WHERE scope = :scope AND key = :key",
)

# The outer DELETE checks the time again, because a request may meanwhile have renewed the key.
DELETE_EXPIRED = Statement(
    "idempotency_keys.delete_expired",
    "DELETE FROM idempotency_keys WHERE created_at < :before AND (scope, key) IN"
    " (SELECT scope, key FROM idempotency_keys WHERE created_at < :before"
    " ORDER BY created_at LIMIT :limit)",
    prepare=False,
)


def replay(request: Request) -> Response | None:
    """The stored answer to an earlier request with the same key; None if this request must run.

    If this is the first request with its key, ``request.key`` is set, and the caller must pass the
    answer to :func:`store`. Raises Invalid if the key does not have 1 to 255 printable characters.
    Raises Invalid ``idempotency_key_reused`` if the query, the body or one of
    :data:`DISTINGUISHING_HEADERS` differs from the first request's. If the first request still runs
    after :data:`WAIT_SECONDS`, raises IdempotencyInProgress; after a shorter DB_STATEMENT_TIMEOUT,
    PostgreSQL's error, which is answered with 503.
    """
    request.key = None
    name = request.headers.get("Idempotency-Key")
    if name is None or not request.credential or request.method not in METHODS:
        return None
    if not 1 <= len(name) <= MAX_KEY_LENGTH or not name.isprintable():
        reason = f"an idempotency key has 1 to {MAX_KEY_LENGTH} printable characters"
        raise Invalid(value_error(LOCATION, reason, name))
    scope = f"{request.credential} {request.method} {request.path}".encode()
    key = {"scope": hashlib.sha256(scope).hexdigest(), "key": name}
    fingerprint = _fingerprint(request)
    if _claim(key, fingerprint):
        request.key = key
        return None
    stored = GET.one(**key)
    if stored.fingerprint != fingerprint:
        raise Invalid(reused(name))
    response = Response(stored.body, status=stored.status, headers=stored.headers or {})
    response.headers["Idempotent-Replayed"] = "true"
    return response


def store(request: Request, response: Response) -> None:
    """Store a 2xx answer with the key that the request has claimed. Else delete the key."""
    if request.key is None:
        return
    if not 200 <= response.status_code < 300:
        delete_where(IdempotencyKey, **request.key)  # no error was raised, so it would be committed
        return
    headers = {name: response.headers[name] for name in STORED_HEADERS if name in response.headers}
    body = response.get_data() if request.repeatable_body is None else request.repeatable_body
    if len(body) > MAX_BODY:
        body = NOT_STORED
    answer = {"status": response.status_code, "headers": headers, "body": body}
    update_where(IdempotencyKey, request.key, answer)


def reused(key: str) -> Entry:
    """The 422 entry for a key that was used with another request."""
    reason = "This idempotency key was used with another request"
    return error(LOCATION, "idempotency_key_reused", reason, key)


def _fingerprint(request: Request) -> str:
    """A digest of query, DISTINGUISHING_HEADERS and body, equal for equal requests."""
    headers = [request.headers.get(name) for name in DISTINGUISHING_HEADERS]
    head = json.dumps([request.query_string.decode("latin-1"), *headers])  # has no NUL
    return hashlib.sha256(head.encode() + b"\0" + request.get_data()).hexdigest()


def _claim(key: Mapping[str, str], fingerprint: str) -> bool:
    """Insert the key, or renew an expired key. False if another request has used the key.

    Waits while another transaction is inserting the same key.
    """
    now, limit = utcnow(), f"{int(WAIT_SECONDS * 1000)}ms"
    values = {"fingerprint": fingerprint, "now": now, "expired_before": now - LIFETIME}
    try:
        return CLAIM.execute(**key, **values, limit=limit) == 1
    except LockNotAvailable:
        raise IdempotencyInProgress from None


def forget_expired(limit: int) -> int:
    """Delete at most ``limit`` keys that are older than :data:`LIFETIME`; returns their number."""
    return DELETE_EXPIRED.execute(before=utcnow() - LIFETIME, limit=limit)

"""Who asks, the connection, and how rows become answers."""

from __future__ import annotations

import os
import threading
import time
from typing import Any
from uuid import UUID

import jwt
import orjson
import psycopg2
import psycopg2.extras
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from psycopg2.extensions import connection, cursor
from uuid_utils.compat import uuid7

Environ = dict[str, Any]
Answer = tuple[list[tuple[str, str]], bytes]  # headers and body

DSN = os.environ["DATABASE_URL"].replace("+psycopg2", "")
PUBLIC_KEY = load_pem_public_key(os.environ["JWT_PUBLIC_KEY"].encode())
REMEMBERED = 60.0  # seconds, as in the service
READ = {"users:read", "flags:read"}
EVERYTHING = READ | {"users:write", "memberships:write", "billing:write"}
PERMISSIONS = {
    "owner": EVERYTHING,
    "admin": EVERYTHING,
    "billing": READ | {"billing:write"},
    "member": READ,
    "viewer": {"users:read"},
}

psycopg2.extras.register_default_json(globally=True, loads=orjson.loads)
local = threading.local()
claims_seen: dict[str, tuple[float, dict[str, Any]]] = {}


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, status: str, detail: Any) -> None:
        super().__init__(status)
        self.status = status
        self.detail = detail


class Caller:
    """Who asks: the user, the tenant and the role."""

    def __init__(self, user_id: str, tenant_id: str, role: str) -> None:
        self.user_id, self.tenant_id, self.role = user_id, tenant_id, role


def verified(header: str) -> dict[str, Any]:
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer":
        raise Refused("401 Unauthorized", "Not authenticated")
    known = claims_seen.get(token)
    if known and known[0] > time.time():
        return known[1]
    try:
        claims = jwt.decode(
            token,
            PUBLIC_KEY,
            algorithms=["EdDSA"],
            issuer=os.environ["JWT_ISSUER"],
            audience=os.environ["JWT_AUDIENCE"],
            options={"require": ["exp", "iat", "iss", "aud", "sub"]},
        )
    except jwt.PyJWTError:
        raise Refused("401 Unauthorized", "Not authenticated") from None
    claims_seen[token] = (time.time() + REMEMBERED, claims)
    return claims


def session() -> connection:
    """This thread's connection."""
    if not hasattr(local, "session"):
        local.session = psycopg2.connect(DSN, options="-c timezone=UTC -c statement_timeout=15s")
    opened: connection = local.session
    return opened


def authenticate(database: cursor, claims: dict[str, Any]) -> Caller:
    database.execute(
        "SELECT user_id, tenant_id, role, tenant_is_active FROM authenticate_user(%s, %s)",
        (claims["sub"], claims["org_id"]),
    )
    user_id, tenant_id, role, tenant_is_active = database.fetchone()
    if user_id is None:
        raise Refused("403 Forbidden", "No active membership in this organization.")
    if not tenant_is_active:
        raise Refused("403 Forbidden", "This tenant is suspended.")
    return Caller(user_id, tenant_id, role)


AUDITED = """
    INSERT INTO audit_events (tenant_id, id, created_at, actor, action, target_type,
        target_id, before, after, request_id)
    SELECT tenant_id, %(audit_id)s, updated_at, %(actor)s, %(action)s, split_part(%(action)s, '.', 1),
        id, %(before)s, %(after)s, %(request_id)s FROM changed"""


def change(
    caller: Caller, environ: Environ, action: str, row_id: str, before: Any, after: Any
) -> Environ:
    """The values that an UPDATE with :data:`AUDITED` takes."""
    return {
        "tenant": caller.tenant_id,
        "id": row_id,
        "actor": caller.user_id,
        "action": action,
        "audit_id": str(uuid7()),
        "before": orjson.dumps(before).decode(),
        "after": orjson.dumps(after).decode(),
        "request_id": environ.get("HTTP_X_REQUEST_ID") or str(uuid7()),
    }


def one(database: cursor, statement: str, values: Any) -> Any:
    database.execute(statement, values)
    row = database.fetchone()
    if row is None:
        raise Refused("404 Not Found", "Not Found")
    return row


def answer(names: list[str], row: tuple[Any, ...]) -> Answer:
    """The row without its version, which is the ETag."""
    return [("ETag", f'"{row[0]}"')], dumps({"data": dict(zip(names, row[1:], strict=True))})


def dumps(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_UTC_Z)


def json_body(environ: Environ) -> dict[str, Any]:
    try:
        body = orjson.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
    except ValueError:
        raise Refused("400 Bad Request", "There was an error parsing the body") from None
    if not isinstance(body, dict):
        raise Refused("422 Unprocessable Entity", [{"loc": ["body"]}])
    return body


def uuid(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise Refused("404 Not Found", "Not Found") from None


def whole_number(text: str, low: int, high: int) -> int:
    if not text.isdecimal() or not low <= int(text) <= high:
        raise Refused("422 Unprocessable Entity", [{"loc": ["query", "limit"]}])
    return int(text)

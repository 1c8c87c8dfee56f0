"""What every peer does in plain Python: the token, the rules, the signature, the notification.

The rules are the service's, for the measured requests only.
"""

from __future__ import annotations

import base64
import gc
import hashlib
import hmac
import os
import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import jwt
import orjson
import redis
import rq
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from pydantic_core import SchemaValidator
from rq.serializers import JSONSerializer
from uuid_utils.compat import uuid7

from app.core.validation import scalars

PUBLIC_KEY = load_pem_public_key(os.environ["JWT_PUBLIC_KEY"].encode())
REMEMBERED = 60.0  # seconds a verified token is not verified again, as in the service
REDIS_TIMEOUT = 0.5  # seconds
EMAIL = SchemaValidator(scalars.email())
RATE_LIMIT = int(os.environ["RATELIMIT_DEFAULT"].partition("/")[0])  # requests per minute
MINUTE = 60
TOLERANCE = 300  # seconds that a webhook's timestamp may be off
MAX_META_DATA = 32_768
SECRETS = [
    base64.b64decode(pair.partition(":whsec_")[2])
    for pair in os.environ["IDP_WEBHOOK_SECRETS"].split()
    if pair.startswith("standard_webhooks:")
]
READ = {"users:read", "flags:read"}
EVERYTHING = READ | {"users:write", "memberships:write", "billing:write"}
PERMISSIONS = {
    "owner": EVERYTHING,
    "admin": EVERYTHING,
    "billing": READ | {"billing:write"},
    "member": READ,
    "viewer": {"users:read"},
}
RANKS = {"owner": 4, "admin": 3, "billing": 2, "member": 1, "viewer": 0}


class Refused(Exception):
    """The request is answered with ``status`` and ``{"detail": …}``."""

    def __init__(self, status: int, detail: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Claims:
    """A verified token; ``rate_key`` names its rate-limit bucket."""

    subject: str
    org_id: str
    rate_key: str
    remembered_until: float


_claims: dict[str, Claims] = {}


def verified(header: str) -> Claims:
    """The claims of an ``Authorization`` header; raises Refused 401."""
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer":
        raise Refused(401, "Not authenticated")
    known = _claims.get(token)
    if known and known.remembered_until > time.time():
        return known
    try:
        found = jwt.decode(
            token,
            PUBLIC_KEY,
            algorithms=["EdDSA"],
            issuer=os.environ["JWT_ISSUER"],
            audience=os.environ["JWT_AUDIENCE"],
            options={"require": ["exp", "iat", "iss", "aud", "sub"]},
        )
    except jwt.PyJWTError:
        raise Refused(401, "Not authenticated") from None
    rate_key = hashlib.sha256(token.encode()).hexdigest()[:32]
    claims = Claims(found["sub"], found["org_id"], rate_key, time.time() + REMEMBERED)
    _claims[token] = claims
    return claims


def rate_headers(count: int, now: float) -> list[tuple[str, str]]:
    """The ``RateLimit-*`` headers after ``count`` requests in this minute; raises Refused 429."""
    if count > RATE_LIMIT:
        raise Refused(429, "Too many requests")
    return [
        ("RateLimit-Limit", str(RATE_LIMIT)),
        ("RateLimit-Remaining", str(RATE_LIMIT - count)),
        ("RateLimit-Reset", str(int(MINUTE - now % MINUTE) or 1)),
    ]


def authorize(principal: Any, permission: str) -> None:
    """Raise Refused 403 unless the row of ``authenticate_user`` has the permission."""
    if principal["user_id"] is None:
        raise Refused(403, "No active membership in this organization.")
    if not principal["tenant_is_active"]:
        raise Refused(403, "This tenant is suspended.")
    if permission not in PERMISSIONS[principal["role"]]:
        raise Refused(403, f"This needs the permission {permission}.")


def check_version(if_match: str | None, version: int) -> None:
    """Raise Refused 412 where an ``If-Match`` header names another version."""
    if if_match is not None and if_match != f'"{version}"':
        raise Refused(412, "The resource has changed.")


def check_email(value: str) -> str:
    """The address as the service normalizes it, by the service's own check; else Refused 422."""
    try:
        return EMAIL.validate_python(value)
    except Exception:
        raise Refused(422, [{"loc": ["body", "billing_email"]}]) from None


def change(
    row: Any, principal: Any, request_id: str | None, before: Any, after: Any
) -> dict[str, Any]:
    """The values that a statement with an audit row needs; ``row`` is the locked one."""
    return {
        "tenant_id": principal["tenant_id"],
        "id": row["id"],
        "version": row["version"],
        "actor": str(principal["user_id"]),
        "audit_id": uuid7(),
        "before": before,
        "after": after,
        "request_id": request_id or str(uuid7()),
    }


def patched(row: Any, patches: dict[str, Any]) -> dict[str, Any]:
    """The ``meta_data`` after a merge patch; raises Refused 422 for values that break a rule."""
    for key, (field_type, options) in (row["rules"] or {}).items():
        value = patches.get(key)
        if value is not None and not _fits(field_type, options, value):
            raise Refused(422, [{"loc": ["body", "patches", key]}])
    after = merge_patch(row["meta_data"], patches)
    if len(orjson.dumps(after)) > MAX_META_DATA:
        raise Refused(422, [{"loc": ["body", "patches"]}])
    return after


def _fits(field_type: str, options: list[str] | None, value: Any) -> bool:
    """The rules of the field types that the data has."""
    match field_type:
        case "integer":
            return type(value) is int
        case "select":
            return value in (options or ())
        case _:
            return False


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result


def check_role(role: str, current: str, own: str) -> None:
    """Raise Refused 403 where the role, now or then, is above the principal's own."""
    if max(RANKS[role], RANKS[current]) > RANKS[own]:
        raise Refused(403, "Nobody grants a role above their own.")


def evaluated(row: Any) -> bytes:
    """OFREP's answer for all flags of a tenant."""
    own = row["overrides"] if row["overrides"] and row["is_active"] else {}
    static = "STATIC" if row["is_active"] else "DISABLED"
    flags = []
    for flag in row["flags"] or ():
        key = flag["flag_key"]
        is_own = key in own
        flags.append(
            {
                "key": key,
                "reason": "TARGETING_MATCH" if is_own else static,
                "variant": "override" if is_own else "preset",
                "metadata": {"plan": row["plan_name"]},
                "value": own[key] if is_own else flag["default_value"],
            }
        )
    return orjson.dumps({"flags": flags})


def etag_of(body: bytes) -> str:
    """The entity tag of an answer without a version."""
    return f'"{hashlib.md5(body).hexdigest()}"'


def resource(row: Any) -> tuple[str, bytes]:
    """The ETag and the body of one row, whose ``version`` is not shown."""
    data = dict(row)
    version = data.pop("version")
    return f'"{version}"', dumps({"data": data})


def page(rows: list[Any], limit: int) -> bytes:
    """A list's body; ``rows`` has one more than ``limit`` where there is a next page."""
    data = [dict(row) for row in rows[:limit]]
    cursor = f"{data[-1]['created_at']}/{data[-1]['id']}" if len(rows) > limit else None
    return dumps({"data": data, "next_cursor": cursor})


def dumps(value: Any) -> bytes:
    """JSON; ``default`` is for asyncpg's subclass of UUID."""
    return orjson.dumps(value, default=str, option=orjson.OPT_UTC_Z)


def inbox_row(source: str, headers: Any, body: bytes) -> dict[str, Any]:
    """The row of a signed delivery (Standard Webhooks); raises Refused 401."""
    message_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    signature = headers.get("webhook-signature", "")
    if not message_id or not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > TOLERANCE:
        raise Refused(401, "Not authenticated")
    content = f"{message_id}.{timestamp}.".encode() + body
    expected = [
        b"v1," + base64.b64encode(hmac.digest(secret, content, "sha256")) for secret in SECRETS
    ]
    if not any(
        hmac.compare_digest(entry.encode(), one) for entry in signature.split() for one in expected
    ):
        raise Refused(401, "Not authenticated")
    return {
        "id": uuid7(),
        "source": source,
        "external_id": message_id,
        "event_type": str(orjson.loads(body).get("type", "")),
        "headers": {
            "webhook-id": message_id,
            "webhook-timestamp": timestamp,
            "webhook-signature": "[redacted]",
        },
        "body": body,
        "digest": hashlib.sha256(body).hexdigest(),
        "request_id": headers.get("x-request-id") or str(uuid7()),
    }


def receipt(event_id: UUID, *, duplicate: bool) -> bytes:
    """The answer to a delivery."""
    return dumps({"status": "accepted", "event_id": event_id, "duplicate": duplicate})


class Notifier:
    """Tells the worker about new events by an RQ job, as the service does.

    One job is enough for all events before it starts. So a key in Redis tells that a job waits,
    and a process asks Redis at most once in :data:`SILENT` seconds.
    """

    SILENT = 0.03
    LASTING = 10_000  # milliseconds

    def __init__(self, name: str) -> None:
        self._redis = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=REDIS_TIMEOUT)
        self._queue = rq.Queue(name, connection=self._redis, serializer=JSONSerializer)
        self._key = f"{name}:waiting"
        self._asked = 0.0

    def is_due(self) -> bool:
        """True at most once in SILENT seconds."""
        now = time.monotonic()
        if now - self._asked < self.SILENT:
            return False
        self._asked = now
        return True

    def notify(self) -> None:
        """Queue a job unless one waits."""
        if self._redis.set(self._key, b"1", nx=True, px=self.LASTING):
            self._queue.enqueue("process_events", result_ttl=60)  # no worker runs here


def tune_garbage_collection() -> None:
    """The service's settings: objects loaded so far are never collected, the others less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)

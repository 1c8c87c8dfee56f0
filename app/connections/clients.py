"""OAuth 2.0 client credentials: a connection's secret or signed assertion for an access token.

The client id is the connection's id, the client secret its bearer token. A client with a private
key sends an assertion instead (RFC 7523); the connection has the public keys.
"""

from __future__ import annotations

import hmac
from datetime import timedelta
from typing import Any

import jwt
from psycopg2.errors import UniqueViolation
from sqlalchemy import bindparam, delete

from app.auth.keys import digest_of
from app.auth.tokens import algorithm_of
from app.connections.models import ConnectionStatus, ScimAccessToken
from app.connections.service import new_token
from app.core.clock import utcnow
from app.core.db import tenancy
from app.core.db.queries import id_or_none
from app.core.db.statements import Statement
from app.core.db.writes import insert_row
from app.core.errors import AppError
from app.core.observability.logs import add_facts

LIFETIME = timedelta(minutes=60)
ASSERTION_LIFETIME = timedelta(minutes=30)  # less than an access token's, whose row notes its use
LEEWAY = 30  # seconds of clock difference
REQUIRED = ["iss", "sub", "aud", "exp"]

FIND = Statement(
    "auth.find_scim_client",
    "SELECT id, tenant_id, status, digest, old_digest, public_keys"
    " FROM find_scim_client(CAST(:client_id AS uuid))",
)
END_OLD = Statement(
    "scim_access_tokens.end_old",
    delete(ScimAccessToken).where(
        ScimAccessToken.tenant_id == bindparam("tenant_id"),
        ScimAccessToken.connection_id == bindparam("connection_id"),
        ScimAccessToken.expires_at <= bindparam("now"),
    ),
)


class OAuthError(AppError):
    """An error with a ``code`` of RFC 6749 section 5.2."""

    def __init__(self, code: str, detail: str, *, status: int = 400) -> None:
        super().__init__(detail)
        self.code = code
        self.status = status


class InvalidClient(OAuthError):
    """The client is unknown or disabled, or its secret or assertion is not valid."""

    def __init__(self, detail: str = "The client's credentials are not valid.") -> None:
        super().__init__("invalid_client", detail, status=401)


def grant_to_secret(client_id: str, secret: str) -> str:
    """An access token for a client's secret; raises InvalidClient."""
    client = _find(client_id)
    digest = digest_of(secret)
    if not any(
        hmac.compare_digest(digest, one or "") for one in (client.digest, client.old_digest)
    ):
        raise InvalidClient
    return grant(client)


def grant_to_assertion(assertion: str, audience: str) -> str:
    """An access token for a signed assertion, which counts once; raises InvalidClient."""
    try:
        claims = jwt.decode(assertion, options={"verify_signature": False})
        client = _find(str(claims.get("sub")))
        claims = _verified(assertion, client, audience)
    except (jwt.PyJWTError, LookupError, ValueError, TypeError, OverflowError) as fault:
        raise InvalidClient(f"The assertion is not valid: {type(fault).__name__}.") from None
    if int(claims["exp"]) > (utcnow() + ASSERTION_LIFETIME).timestamp() + LEEWAY:
        raise InvalidClient("The assertion is valid for longer than 30 minutes.")
    signed = assertion.rpartition(".")[0]  # of ES256 anybody can make a second signature
    return grant(client, assertion_digest=digest_of(signed))


def _find(client_id: str) -> Any:
    """The client, in whose tenant's scope the transaction is afterwards; raises InvalidClient."""
    found = FIND.first(client_id=client_id) if id_or_none(client_id) else None
    if found is None or found.status == ConnectionStatus.DISABLED:
        raise InvalidClient
    add_facts(tenant=str(found.tenant_id), scim_connection=str(found.id))
    tenancy.note(tenancy.Scope(found.tenant_id))
    return found


def _verified(assertion: str, client: Any, audience: str) -> dict[str, Any]:
    """The claims; raises the last key's error where no key has signed the assertion."""
    fault: Exception = LookupError()
    key_id = jwt.get_unverified_header(assertion).get("kid")
    entries = [one for one in client.public_keys if key_id in (None, one.get("kid"))]
    for key in (jwt.PyJWK(entry).key for entry in entries):
        try:
            return jwt.decode(
                assertion,
                key,
                algorithms=[algorithm_of(key)],
                issuer=str(client.id),
                subject=str(client.id),
                audience=audience,
                leeway=LEEWAY,
                options={"require": REQUIRED, "enforce_minimum_key_length": True},
            )
        except jwt.PyJWTError as refused:
            fault = refused
    raise fault


def grant(client: Any, *, assertion_digest: str | None = None) -> str:
    """An access token of a connection; raises InvalidClient for a used assertion."""
    token, now = new_token(), utcnow()
    END_OLD.execute(tenant_id=client.tenant_id, connection_id=client.id, now=now)
    values = {
        "tenant_id": client.tenant_id,
        "connection_id": client.id,
        "digest": digest_of(token),
        "expires_at": now + LIFETIME,
        "assertion_digest": assertion_digest,
    }
    try:
        insert_row(ScimAccessToken, values)
    except UniqueViolation:
        raise InvalidClient("The assertion has been used before.") from None
    return token

"""Proofs: verified credentials without their secrets, also as grants in URLs of streams.

A browser's ``EventSource`` sends no ``Authorization`` header. So the URL of an event stream has a
*grant*: the encrypted proof. It opens the stream of one tenant's flags and nothing else, and only
while the credential is valid. Equal proofs have equal grants, so the URL stays the same.
"""

from __future__ import annotations

import base64
import hashlib
import time
from typing import NamedTuple
from uuid import UUID

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from app.auth.keys import KEY_PREFIX, digest_of
from app.auth.principals import Principal, key_principal, user_principal
from app.auth.tokens import Claims, TokenVerifier
from app.core.errors import Unauthenticated
from app.core.observability.logs import add_facts

DAY = 86_400  # seconds


class Proof(NamedTuple):
    """The claims of a user token, or the digest of an API key (``name``)."""

    is_key: bool
    name: str
    org_id: str | None
    expires_at: float  # seconds since 1970; that of a key is one to two days away

    def principal(self) -> Principal:
        """The principal now; sets the scope. Raises Unauthenticated, or NoMembership for a user."""
        if self.expires_at < time.time():
            raise Unauthenticated(reason="token_expired")
        if self.is_key:
            return key_principal(self.name)
        return user_principal(Claims(self.name, self.org_id))

    def tag(self, fingerprint: str) -> str:
        """The ETag of flags with this fingerprint; it differs where the grant does."""
        return f"{fingerprint}.{hashlib.sha256(orjson.dumps(list(self))).hexdigest()[:8]}"

    def grant(self, tenant_id: UUID, key: bytes) -> str:
        sealed = AESSIV(key).encrypt(orjson.dumps(list(self)), [tenant_id.bytes, b"grant"])
        return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def proof_of(credential: str, verifier: TokenVerifier) -> Proof:
    """The proof of a bearer credential; raises Unauthenticated or KeysUnavailable."""
    if not credential:
        raise Unauthenticated(reason="credential_missing")
    is_key = credential.startswith(KEY_PREFIX)
    add_facts(credential="api_key" if is_key else "user_token")
    if is_key:
        return Proof(True, digest_of(credential), None, (time.time() // DAY + 2) * DAY)
    claims = verifier.verify(credential)
    return Proof(False, claims.subject, claims.org_id, claims.expires_at)


def granted(grant: str, tenant_id: UUID, key: bytes) -> Proof | None:
    """The proof in a grant; None if it is not one for this tenant."""
    try:
        sealed = base64.urlsafe_b64decode(grant.encode("ascii") + b"==")
        return Proof(*orjson.loads(AESSIV(key).decrypt(sealed, [tenant_id.bytes, b"grant"])))
    except (ValueError, InvalidTag):
        return None

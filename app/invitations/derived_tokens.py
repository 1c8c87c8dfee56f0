"""Tokens of invitations: 256 bits, derived from ``SECRETS_KEY`` and not stored.

So a job that has only the id can send the token, and no table contains it. The stored digest
decides which token is valid: a new ``SECRETS_KEY`` ends no link.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from hashlib import sha256
from uuid import UUID

from sqlalchemy import ARRAY, Uuid, any_, bindparam, select

from app.auth.keys import digest_of
from app.config import current_config
from app.core.db.statements import Statement
from app.invitations.models import IS_PENDING, Invitation
from app.webhooks.endpoints.encryption import SecretsKeyMissing

PREFIX = "inv_"
FIND_PENDING = Statement(
    "invitations.find_pending",
    select(Invitation).where(
        Invitation.id == any_(bindparam("ids", type_=ARRAY(Uuid))), IS_PENDING
    ),
)


def new_token(invitation_id: UUID, rotation: int) -> str:
    """The token with this number; raises SecretsKeyMissing without ``SECRETS_KEY``."""
    keys = current_config().secrets_key
    if not keys:
        raise SecretsKeyMissing
    return _derive(keys[0], invitation_id, rotation)


def token_of(invitation: Invitation) -> str | None:
    """The invitation's valid token; None if no key of ``SECRETS_KEY`` derives it."""
    for key in current_config().secrets_key:
        token = _derive(key, invitation.id, invitation.rotation)
        if digest_of(token) == invitation.digest:
            return token
    return None


def url_of(token: str | None) -> str | None:
    """The product's page that accepts the invitation; None without ``INVITATION_URL``."""
    url = current_config().invitation_url
    return url.replace("{token}", token) if url and token else None


def pending_tokens(ids: Sequence[UUID]) -> dict[tuple[str, int], dict[str, str | None]]:
    """``token`` and ``url`` of those invitations that are pending, by id and number of the token."""
    return {
        (str(one.id), one.rotation): {"token": token, "url": url_of(token)}
        for one in FIND_PENDING.all(ids=list(ids))
        for token in [token_of(one)]
    }


def _derive(key: str, invitation_id: UUID, rotation: int) -> str:
    own_key = hmac.digest(key.encode(), b"invitations", sha256)
    sealed = hmac.digest(own_key, invitation_id.bytes + rotation.to_bytes(8), sha256)
    return PREFIX + urlsafe_b64encode(sealed).decode().rstrip("=")

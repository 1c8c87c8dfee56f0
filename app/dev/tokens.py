"""User tokens signed by the development key: what an identity provider would issue."""

from __future__ import annotations

import time

import jwt
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from app.auth.tokens import algorithm_of
from app.config import Config
from app.dev.faults import DevError

HOUR = 3600


def issue_token(
    config: Config, *, subject: str, org_id: str | None = None, ttl: float = HOUR
) -> str:
    """A JWT for ``subject``, valid for ``ttl`` seconds.

    The service accepts it like any other: by the public key it is configured with. Raises
    :class:`DevError` where no development key is configured.
    """
    require_signing_key(config)
    key = load_pem_private_key(config.jwt_signing_key.encode(), None)
    now = int(time.time())
    claims = {
        "iss": config.jwt_issuer,
        "aud": config.jwt_audience,
        "iat": now,
        "exp": now + int(ttl),
        config.jwt_subject_claim: subject,
    }
    if org_id is not None:
        claims[config.jwt_org_claim] = org_id
    return jwt.encode(claims, key, algorithm=algorithm_of(key.public_key()))  # type: ignore[arg-type]


def require_signing_key(config: Config) -> None:
    """Raise :class:`DevError` where this is no development instance."""
    if not config.jwt_signing_key:
        raise DevError(
            "Tokens are issued by the identity provider here: JWT_SIGNING_KEY is not set."
        )

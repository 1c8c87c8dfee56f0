"""User tokens for the load, signed with the private instance's key."""

from __future__ import annotations

import time
from collections.abc import Mapping

import jwt
from cryptography.hazmat.primitives.serialization import load_pem_private_key


def bearer(environment: Mapping[str, str], *, subject: str, org_id: str) -> dict[str, str]:
    """The ``Authorization`` header of one user, good for a day."""
    now = int(time.time())
    claims = {
        "iss": environment["JWT_ISSUER"],
        "aud": environment["JWT_AUDIENCE"],
        "sub": subject,
        "org_id": org_id,
        "iat": now,
        "exp": now + 86_400,
    }
    key = load_pem_private_key(environment["JWT_SIGNING_KEY"].encode(), None)
    return {"Authorization": f"Bearer {jwt.encode(claims, key, algorithm='EdDSA')}"}

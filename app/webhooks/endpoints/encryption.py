"""Encryption of secrets at rest: Fernet, by the keys of ``SECRETS_KEY``.

The first key encrypts, and each of them decrypts. To replace a key, add the new one as the second,
so that every process can decrypt with it, before one encrypts with it (docs/operations/secrets.md).
"""

from __future__ import annotations

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from app.config import current_config
from app.core.errors import Unavailable


class SecretsKeyMissing(Unavailable):
    code = "secrets_key_missing"
    detail = "Secrets cannot be stored: the service has no SECRETS_KEY."


class Undecryptable(Exception):
    """No key of ``SECRETS_KEY`` decrypts a stored secret."""


def encrypt(text: str) -> str:
    """The text, encrypted with the first key; raises SecretsKeyMissing."""
    return keys().encrypt(text.encode()).decode()


def decrypt(encrypted: str) -> str:
    """The text that was encrypted; raises SecretsKeyMissing and Undecryptable."""
    try:
        return keys().decrypt(encrypted).decode()
    except InvalidToken:
        raise Undecryptable("no key of SECRETS_KEY decrypts this secret") from None


def keys() -> MultiFernet:
    """The keys of ``SECRETS_KEY``; raises SecretsKeyMissing where it is not set."""
    configured = current_config().secrets_key
    if not configured:
        raise SecretsKeyMissing
    return MultiFernet([Fernet(key) for key in configured])

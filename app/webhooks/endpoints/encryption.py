"""Encryption of secrets at rest: Fernet, by the keys of ``SECRETS_KEY``.

The first key encrypts, and each of them decrypts. To replace a key, first add the new key as the
second, so that every process can decrypt with it before any process encrypts with it
(docs/operations/secrets.md).
"""

from __future__ import annotations

from functools import cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from sqlalchemy import select

from app.config import current_config
from app.core.db import queries
from app.core.db.statements import Statement
from app.core.errors import Unavailable
from app.extensions import Model


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


def reencrypt(model: type[Model], *names: str) -> int:
    """Encrypt these columns of all rows with the first key of ``SECRETS_KEY``; how many rows.

    Raises SecretsKeyMissing, and Undecryptable for a secret that no key decrypts.
    """
    rows = _lock_all(model).all()
    for row in rows:
        key = {column.name: getattr(row, column.name) for column in model.__table__.primary_key}
        old = {name: getattr(row, name) for name in names}
        new = {name: text and encrypt(decrypt(text)) for name, text in old.items()}
        queries.update_where(model, key, new)
    return len(rows)


@cache
def _lock_all(model: type[Model]) -> Statement:
    table = model.__table__
    clause = select(model).order_by(*table.primary_key).with_for_update()
    return Statement(f"{table.name}.lock_all", clause)


def keys() -> MultiFernet:
    """The keys of ``SECRETS_KEY``; raises SecretsKeyMissing where it is not set."""
    configured = current_config().secrets_key
    if not configured:
        raise SecretsKeyMissing
    return MultiFernet([Fernet(key) for key in configured])

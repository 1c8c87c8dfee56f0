"""The configuration of a private instance, where no ``DATABASE_URL`` is set.

Addresses follow from the instance folder; secrets are created once and stored in it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from base64 import b64encode
from collections.abc import Callable, Mapping
from pathlib import Path

from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from app.dev.engines.instance import OWNER_ROLE, Instance


def development_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """``environ``, completed with the values of a private instance."""
    instance = Instance.at(environ.get("INSTANCE_DIR") or "instance")
    new_secret = "whsec_" + b64encode(secrets.token_bytes(32)).decode()
    try:
        signing_key = _stored(instance.folder / "signing-key.pem", _new_signing_key)
        webhook_secret = _stored(instance.folder / "webhook-secret", lambda: new_secret)
        workos_secret = _stored(instance.folder / "workos-secret", secrets.token_hex)
        secrets_key = _stored(instance.folder / "secrets-key", Fernet.generate_key().decode)
    except OSError as fault:
        raise instance.unusable(fault) from None
    defaults = {
        "INSTANCE_DIR": str(instance.folder),
        "PRIVATE_INSTANCE": "1",
        "ENVIRONMENT_NAME": "development",
        "DATABASE_URL": instance.database_url(),
        "MIGRATION_DATABASE_URL": instance.database_url(OWNER_ROLE),
        "REDIS_URL": instance.redis_url,
        "JWT_ISSUER": "https://dev.controlplane.example/",
        "JWT_AUDIENCE": "controlplane",
        "JWT_PUBLIC_KEY": _public_key(signing_key),
        "JWT_SIGNING_KEY": signing_key,
        "IDP_WEBHOOK_SECRETS": f"standard_webhooks:{webhook_secret} workos:{workos_secret}",
        "EMAIL_WEBHOOK_SECRETS": f"standard_webhooks:{webhook_secret}",
        "SECRETS_KEY": secrets_key,
        "WEBHOOK_ALLOW_PRIVATE": "1",
    }
    return {**defaults, **{name: value for name, value in environ.items() if value}}


def _stored(path: Path, create: Callable[[], str]) -> str:
    """The secret in ``path``, created if there is none; every process reads the same secret."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent) as file:  # mode 0600
            file.write(create())
            file.flush()
            with contextlib.suppress(FileExistsError):
                os.link(file.name, path)
    return path.read_text()


def _new_signing_key() -> str:
    key = Ed25519PrivateKey.generate()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _public_key(signing_key: str) -> str:
    key = load_pem_private_key(signing_key.encode(), None).public_key()
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

"""The configuration of a private instance, where no ``DATABASE_URL`` is set.

Addresses follow from the instance folder; the secrets are made once and kept in it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from base64 import b64encode
from collections.abc import Callable, Mapping
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from app.dev.folders import unusable
from app.dev.instance import OWNER_ROLE, Instance

ISSUER = "https://dev.controlplane.example/"
AUDIENCE = "controlplane"


def development_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment, with what a private instance needs where it says nothing."""
    instance = Instance.at(environ.get("INSTANCE_DIR") or "instance")
    signing_key = _kept(instance.folder / "signing-key.pem", _new_signing_key)
    webhook_secret = _kept(instance.folder / "webhook-secret", _new_webhook_secret)
    workos_secret = _kept(instance.folder / "workos-secret", secrets.token_hex)
    defaults = {
        "INSTANCE_DIR": str(instance.folder),
        "DATABASE_URL": instance.database_url(),
        "MIGRATION_DATABASE_URL": instance.database_url(OWNER_ROLE),
        "REDIS_URL": instance.redis_url,
        "JWT_ISSUER": ISSUER,
        "JWT_AUDIENCE": AUDIENCE,
        "JWT_PUBLIC_KEY": _public_key(signing_key),
        "JWT_SIGNING_KEY": signing_key,
        "IDP_WEBHOOK_SECRETS": f"standard_webhooks:{webhook_secret} workos:{workos_secret}",
        "EMAIL_WEBHOOK_SECRETS": f"standard_webhooks:{webhook_secret}",
    }
    return {**defaults, **{name: value for name, value in environ.items() if value}}


def _kept(path: Path, make: Callable[[], str]) -> str:
    """The secret in ``path``, made if there is none; whoever comes first makes it for all."""
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_once(path, make())
        return path.read_text()
    except OSError as fault:
        raise unusable(path.parent, fault) from None


def _write_once(path: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent)  # readable by its owner alone
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    with contextlib.suppress(FileExistsError):
        os.link(name, path)
    os.unlink(name)


def _new_signing_key() -> str:
    key = Ed25519PrivateKey.generate()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _new_webhook_secret() -> str:
    return "whsec_" + b64encode(secrets.token_bytes(32)).decode()


def _public_key(signing_key: str) -> str:
    key = load_pem_private_key(signing_key.encode(), None).public_key()
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

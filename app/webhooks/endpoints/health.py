"""Whether the stored secrets can be decrypted."""

from __future__ import annotations

from sqlalchemy import select, union_all

from app.core.db.statements import Statement
from app.core.health import Finding
from app.log_streams.models import LogStreamProgress
from app.webhooks.endpoints.encryption import SecretsKeyMissing, Undecryptable, decrypt
from app.webhooks.endpoints.models import WebhookEndpointState

SOME_SECRETS = Statement(
    "webhook_endpoint_states.some_secrets",
    union_all(
        select(WebhookEndpointState.secret).limit(100), select(LogStreamProgress.secrets).limit(100)
    ),
)


def check_secrets() -> Finding:
    try:
        for secret in SOME_SECRETS.scalars():
            decrypt(secret)
    except (SecretsKeyMissing, Undecryptable):
        fix = "Add the key that encrypted them to SECRETS_KEY; see docs/operations/secrets.md."
        return Finding("stored secrets", False, "SECRETS_KEY does not decrypt them", fix)
    return Finding("stored secrets", True, "SECRETS_KEY decrypts them")


CHECKS = {"stored secrets": check_secrets}

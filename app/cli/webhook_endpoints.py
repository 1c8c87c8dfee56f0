"""``flask webhook-endpoints new-key`` and ``reencrypt``."""

from __future__ import annotations

from cryptography.fernet import Fernet

from app.cli.base import json_option
from app.cli.generated import OperationGroup
from app.core.db.tenancy import platform_transaction
from app.log_streams.models import LogStreamProgress
from app.surfaces.commands.output import print_rows
from app.surfaces.commands.refusals import Refused
from app.webhooks.endpoints.encryption import Undecryptable, reencrypt
from app.webhooks.endpoints.models import WebhookEndpointState

webhook_endpoints = OperationGroup("webhook-endpoints")


@webhook_endpoints.command("new-key")
@json_option
def new_key(as_json: bool) -> None:
    """Print a new key for SECRETS_KEY."""
    print_rows([{"key": Fernet.generate_key().decode()}], ["key"], as_json=as_json)


@webhook_endpoints.command("reencrypt")
@json_option
@platform_transaction()
def reencrypt_all(as_json: bool) -> None:
    """Encrypt all secrets with the first key of SECRETS_KEY.

    After that the other keys can be removed.
    """
    try:
        counts = {
            "endpoints": reencrypt(WebhookEndpointState, "secret", "old_secret", "headers"),
            "log_streams": reencrypt(LogStreamProgress, "secrets"),
        }
    except Undecryptable as fault:
        raise Refused(f"{fault}: nothing was changed.") from None
    print_rows([counts], [*counts], as_json=as_json)

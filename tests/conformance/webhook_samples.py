"""The recorded event bodies, one file each: ``samples/<provider>/<event>.json``."""

import json
from pathlib import Path
from typing import Any

from tests.conformance.webhook_vectors import webhooks_folder

IDENTITY = ("workos", "clerk", "logto", "auth0", "stytch")
EMAIL = ("resend", "sendgrid", "mailgun", "postmark", "ses")
EXPECTED = "expected-normalized.anymail.json"


def sample_files(provider: str) -> dict[str, Path]:
    """Event name -> file, without the expectations beside them."""
    folder = webhooks_folder() / "samples" / provider
    return {file.stem: file for file in sorted(folder.glob("*.json")) if file.name != EXPECTED}


def sample(provider: str, name: str) -> bytes:
    return (webhooks_folder() / "samples" / provider / f"{name}.json").read_bytes()


def document(provider: str, name: str) -> Any:
    return json.loads(sample(provider, name))


def expected_events(provider: str) -> dict[str, list[dict[str, Any]]]:
    """What django-anymail makes of each sample of an e-mail provider."""
    file = webhooks_folder() / "samples" / provider / EXPECTED
    return {name: case["events"] for name, case in json.loads(file.read_text())["samples"].items()}


def changed(provider: str, sample: str, **values: Any) -> Any:
    """A sample with other values; a name with ``__`` in it is a path."""
    body = document(provider, sample)
    for path, value in values.items():
        *parents, name = path.split("__")
        place = body
        for parent in parents:
            place = place[int(parent) if parent.isdecimal() else parent]
        place[name] = value
    return body

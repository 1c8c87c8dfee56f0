"""A trial of a receiver: an event, signed as a provider would, is posted to the running service."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from typing import Any

from app.config import current_config
from app.inbox import verification
from app.inbox.providers import IDENTITY, RECEIVERS, Receiver
from app.inbox.signatures.presets import PRESETS
from app.inbox.signatures.samples import sample
from app.inbox.signatures.sending import Signed, sign

TIMEOUT = 10  # seconds to wait for the service's answer


def send(
    preset: str, receiver: Receiver, url: str, *, body: bytes | None, secret: str | None
) -> tuple[int, Any]:
    """Post ``body``, or a harmless event; the status and the answer.

    Where ``secret`` is None, it is the receiver's first secret for the preset. Raises ValueError,
    with a sentence, if the event cannot be signed or nobody answers.
    """
    secret = secret or _configured_secret(receiver, preset)
    provider = PRESETS[preset].provider or receiver.providers[-1].name
    now = time.time()
    try:
        signed = sign(preset, secret, sample(provider, now) if body is None else body, now)
    except (KeyError, ValueError) as fault:
        raise ValueError(f"This cannot be signed here: {fault}.") from None
    return _post(f"{url}{receiver.path}", signed)


def receiver_of(preset: str) -> Receiver:
    """The receiver of the preset's provider, or of the preset alone; else that of identity events."""
    provider = PRESETS[preset].provider
    for receiver in RECEIVERS.values():
        if receiver.preset == preset or provider in {known.name for known in receiver.providers}:
            return receiver
    return IDENTITY


def _configured_secret(receiver: Receiver, preset: str) -> str:
    """The receiver's first secret for the preset, without its tolerance."""
    for pair in verification.pairs(receiver, current_config()):
        name, _, value = pair.partition(":")
        if name == preset:
            return re.sub(r"\?tolerance=[0-9]+$", "", value)
    raise ValueError(f"{receiver.setting.upper()} has no {preset} secret; give --secret.")


def _post(url: str, signed: Signed) -> tuple[int, Any]:
    headers = {"Content-Type": "application/json", **signed.headers}
    request = urllib.request.Request(url, signed.body, headers)  # noqa: S310 - the operator's own URL
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
            return answer.status, _read(answer.read())
    except urllib.error.HTTPError as refusal:
        return refusal.code, _read(refusal.read())
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "reason", fault)
        raise ValueError(f"{url} does not answer: {reason}. See --url.") from None


def _read(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")

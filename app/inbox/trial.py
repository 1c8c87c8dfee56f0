"""A trial of a receiver: an event, signed as a provider would, is posted to the running service."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from app.config import current_config
from app.core.outgoing import OPERATOR, FetchFailed
from app.inbox import verification
from app.inbox.providers import IDENTITY, RECEIVERS, Receiver
from app.inbox.signatures.presets import PRESETS
from app.inbox.signatures.samples import sample
from app.inbox.signatures.sending import Signed, sign

TIMEOUT = 10.0  # seconds to wait for the service's answer
MAX_BYTES = 1 << 20  # of the answer


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
    try:
        answer = OPERATOR.send(
            "POST", url, body=signed.body, headers=headers, timeout=TIMEOUT, max_bytes=MAX_BYTES
        )
    except FetchFailed as fault:
        raise ValueError(f"{url}: {fault}. See --url.") from None
    try:
        return answer.status, json.loads(answer.body)
    except ValueError:
        return answer.status, answer.body.decode("utf-8", "replace")

"""The interface of a kind of target, and what all kinds share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

import orjson

from app.core.json_text import Json
from app.core.outgoing import AddressRefused, Answer, FetchFailed, guarded, retry_after
from app.core.validation.fields import Str
from app.core.validation.schemas import Schema

MEBIBYTE = 1024 * 1024
TIMEOUT = 30.0  # seconds of one request
MAX_ANSWER = 8_192  # bytes of an answer that are read
MAX_REASON = 300  # characters of a sentence that quotes an answer


class Secret(Str):
    """A credential for the target: printable ASCII characters without spaces."""

    longest = 2_000
    allowed = "^[!-~]+$"


class Failed(Exception):
    """The batch was not written: a sentence. There is another attempt, in ``retry_after`` or later."""

    def __init__(self, sentence: str, retry_after: float = 0.0) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after


class Refused(Failed):
    """The target refuses credentials or settings: a sentence. The stream becomes ``invalid``."""


class Record(NamedTuple):
    """An event as one line of JSON, without the line's end. ``position``: as in the line."""

    line: bytes
    type: str
    created_at: datetime
    position: int | str


class Batch(NamedTuple):
    """Records in the order of their positions. A retry has the same ``name`` and extent."""

    name: str
    records: Sequence[Record]

    def ndjson(self) -> bytes:
        return b"".join(record.line + b"\n" for record in self.records)


class Limits(NamedTuple):
    """The largest batch; ``seconds`` between batches that are not full, ``pause`` after full ones."""

    size: int = 5 * MEBIBYTE
    records: int = 2_000
    seconds: float = 60
    pause: float = 0


class Kind(NamedTuple):
    """A kind of target.

    ``schema`` is that of the stream's ``config``; its fields in ``secrets`` are stored encrypted and
    never shown. ``deliver`` gets a batch and the settings, with the ``owner``: the tenant's id, or
    ``platform``. It writes the batch or raises Failed, within a few requests of :data:`TIMEOUT`.
    """

    schema: type[Schema]
    secrets: Collection[str]
    deliver: Callable[[Batch, Mapping[str, Json]], None]
    limits: Limits = Limits()


def send(method: str, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
    """One request to the target's address; raises Failed if there is no answer."""
    try:
        return guarded().send(
            method, url, body=body, headers=headers, timeout=TIMEOUT, max_bytes=MAX_ANSWER
        )
    except AddressRefused as fault:
        raise Refused(f"The address cannot be used: {fault}.") from None
    except FetchFailed as fault:
        if "SSL" in str(fault) or "Certificate" in str(fault):
            raise Failed("The target's TLS certificate is not valid.") from None
        raise Failed(f"The target gives no usable answer: {fault}.") from None


def post(url: str, body: bytes, headers: Mapping[str, str]) -> tuple[Answer, dict[str, Json]]:
    """POST JSON, as :func:`send`; the answer, and the JSON object in it ({} for anything else)."""
    answer, found = send("POST", url, body, {"Content-Type": "application/json", **headers}), None
    with suppress(ValueError):
        found = orjson.loads(answer.body)
    return answer, found if isinstance(found, dict) else {}


def check(answer: Answer, credentials: str, refusals: Mapping[int, str] | None = None) -> None:
    """Raise Refused for 401 and 403, naming the ``credentials``, and for a status of ``refusals``.

    Raises Failed for any other error.
    """
    if reason := (refusals or {}).get(answer.status):
        raise Refused(" ".join(reason.replace("\0", " ").split())[:MAX_REASON])
    if answer.status in (401, 403):
        raise Refused(f"The target refuses the {credentials} (status {answer.status}).")
    if not 200 <= answer.status < 300:
        wait = retry_after(answer.headers.get("Retry-After", ""))
        raise Failed(f"The target answers with status {answer.status}.", wait)

"""The result of a verifier, and reading what the verifiers read."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class SignedRequest(NamedTuple):
    """A request as it arrived.

    The names of headers are in lower case; a repeated header is one value joined by commas, as WSGI
    servers do. ``now`` is the time of arrival in seconds since 1970.
    """

    headers: Mapping[str, str]
    body: bytes
    now: float


class SignatureInvalid(Exception):
    """The request does not prove its sender. The text is logged and never answered."""


class BodyTooLarge(SignatureInvalid):
    """The signature lies in a body that is too large to be parsed for an unknown sender."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The facts that a valid signature proves about the request."""

    message_id: str | None = None
    """The provider's id of the delivery, where the signature has one."""
    replay_key: str | None = None
    """A value that is accepted once: a second body with it is a forgery or a retry."""


def check_age(age: float, tolerance: float) -> None:
    """Refuse an age in seconds beyond ``tolerance``, in the past or the future."""
    if abs(age) > tolerance:
        raise SignatureInvalid("outside the tolerance")


def json_object(body: bytes) -> dict[str, object]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as fault:
        raise SignatureInvalid("the body is not JSON") from fault
    if not isinstance(document, dict):
        raise SignatureInvalid("the body is not an object")
    return document


def required_text(document: Mapping[str, object], name: str) -> str:
    """A member that is text and not empty."""
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise SignatureInvalid(f"no {name}")
    return value


def decoded(text: bytes) -> bytes:
    """The bytes that were written in base64."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as fault:
        raise SignatureInvalid("not base64") from fault


def utf8(text: str) -> bytes:
    """Text of a JSON document as it was signed; a lone surrogate cannot be signed."""
    try:
        return text.encode()
    except UnicodeEncodeError as fault:
        raise SignatureInvalid("a lone surrogate") from fault

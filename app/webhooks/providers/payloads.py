"""Reading providers' documents: strict about ids and times, lenient about the rest.

A path such as ``"data", "id"`` names a member of nested objects. Text that PostgreSQL cannot
hold (U+0000, lone surrogates) becomes U+FFFD.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, NoReturn

from app.identity_sync.events import EPOCH

MAX_ID = 255
MAX_ADDRESS = 320
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Unreadable(Exception):
    """The event does not have its provider's documented form; a retry cannot help."""


class Unwanted(Exception):
    """An event of a kind that is not applied."""


class Posted:
    """A posted body as raw bytes, and its document, parsed once."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    @cached_property
    def document(self) -> Any:
        """The JSON document; raises Unreadable."""
        return parse(self.body)

    @property
    def event(self) -> dict[str, Any]:
        """The document; raises Unreadable where it is not an object."""
        if not isinstance(self.document, dict):
            raise Unreadable("the body is not a JSON object")
        return self.document


def parse(body: bytes) -> Any:
    """The JSON document in ``body``; raises Unreadable, also for NaN and Infinity."""
    try:
        text = body.decode().removeprefix("\ufeff")
        document = _DECODER.decode(text)
        return _storable(document) if "\\u" in text else document
    except (ValueError, RecursionError) as fault:
        raise Unreadable("the body is not JSON in UTF-8") from fault


def parse_object(body: bytes) -> dict[str, Any]:
    """The same; raises Unreadable where it is not an object."""
    return Posted(body).event


def member(document: Any, *path: str) -> Any:
    """The value at ``path``, or None."""
    for name in path:
        if not isinstance(document, dict):
            return None
        document = document.get(name)
    return document


def objects(document: Any, *path: str) -> list[dict[str, Any]]:
    """The objects in the list at ``path``; empty where there is no list."""
    value = member(document, *path)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(document: Any, *path: str) -> str | None:
    """Text; ``""`` for null; None for a missing member or another type."""
    holder = member(document, *path[:-1])
    if not isinstance(holder, dict) or path[-1] not in holder:
        return None
    value = holder[path[-1]]
    if value is None:
        return ""
    return value if isinstance(value, str) else None


def flag(document: Any, *path: str) -> bool | None:
    """A boolean; None for anything else."""
    value = member(document, *path)
    return value if isinstance(value, bool) else None


def texts(document: Any, *path: str) -> tuple[str, ...]:
    """A list of texts, or one text, as a tuple; other values are left out."""
    value = member(document, *path)
    items = value if isinstance(value, list) else [value]
    return tuple(item for item in items if isinstance(item, str) and item)


def scalars(items: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """Names with plain values, as text; a list of one counts as its element."""
    found = {}
    for name, value in items:
        plain = value[0] if isinstance(value, list) and len(value) == 1 else value
        if isinstance(plain, str | int | float):
            found[name] = plain if isinstance(plain, str) else json.dumps(plain)
    return found


def pairs(document: Any, *path: str) -> dict[str, str]:
    """The object at ``path`` as names with plain values."""
    value = member(document, *path)
    return scalars(value.items()) if isinstance(value, dict) else {}


def identifier(document: Any, *path: str) -> str:
    """An id: text of 1 to 255 characters."""
    value = member(document, *path)
    if not isinstance(value, str) or not value:
        raise Unreadable(f"{'.'.join(path)} is missing")
    if len(value) > MAX_ID:
        raise Unreadable(f"{'.'.join(path)} is longer than {MAX_ID} characters")
    return value


def address(value: Any) -> str:
    """An e-mail address of at most 320 characters, without the name before it.

    The time is linear in the length of ``value``, which the sender decides.
    """
    bare = value.strip() if isinstance(value, str) else ""
    if bare.endswith(">"):
        bare = bare[:-1].rpartition("<")[2].strip()
    if not bare:
        raise Unreadable("the recipient is missing")
    if len(bare) > MAX_ADDRESS:
        raise Unreadable(f"the recipient is longer than {MAX_ADDRESS} characters")
    return bare


def email(document: Any, *path: str) -> str | None:
    """A person's e-mail address as the provider has it, at most 320 characters."""
    value = text(document, *path)
    if value is not None and len(value) > MAX_ADDRESS:
        raise Unreadable(f"{'.'.join(path)} is longer than {MAX_ADDRESS} characters")
    return value


def moment(document: Any, *path: str) -> datetime:
    """An ISO 8601 time with any number of fractional digits; UTC where it has no offset."""
    found = optional_moment(document, *path)
    if found is None:
        raise Unreadable(f"{'.'.join(path)} is not a time")
    return found


def optional_moment(document: Any, *path: str) -> datetime | None:
    """The same, or None where there is none."""
    value = member(document, *path)
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def epoch(document: Any, *path: str) -> datetime:
    """Seconds since 1970, or milliseconds: a number below 10^11 is seconds."""
    found = optional_epoch(document, *path)
    if found is None:
        raise Unreadable(f"{'.'.join(path)} is not a time")
    return found


def optional_epoch(document: Any, *path: str) -> datetime | None:
    """The same, or None where there is none."""
    value = member(document, *path)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    scale = 1_000_000 if in_seconds(value) else 1_000
    try:
        return EPOCH + timedelta(microseconds=round(value * scale))
    except (OverflowError, ValueError):
        return None


def in_seconds(value: float) -> bool:
    """Whether an epoch number counts seconds, not milliseconds."""
    return abs(value) < 10**11


def digest(body: bytes) -> str:
    """The external id of an event whose provider gives it none."""
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def key(*parts: str) -> str:
    """An external id of at most 255 characters, made of ``parts``."""
    joined = _UNSTORABLE.sub("\ufffd", ":".join(parts))
    return joined if len(joined) <= MAX_ID else digest(joined.encode("utf-8", "replace"))


def full_name(name: str | None) -> tuple[str | None, str | None]:
    """First and last name out of one text: the first word, and the rest."""
    if name is None:
        return None, None
    first, _, last = name.strip().partition(" ")
    return first, last.strip()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _storable(value: Any) -> Any:
    match value:
        case str():
            return _UNSTORABLE.sub("\ufffd", value)
        case list():
            return [_storable(item) for item in value]
        case dict():
            return {_storable(name): _storable(item) for name, item in value.items()}
        case _:
            return value


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)

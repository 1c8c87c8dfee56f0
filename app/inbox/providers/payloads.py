"""Reading providers' documents: strict about ids and times, lenient about the rest.

Text that PostgreSQL cannot hold (U+0000, lone surrogates) becomes U+FFFD.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import NoReturn

from app.identity_sync.events import EPOCH

MAX_ID = 255
MAX_ADDRESS = 320
MAX_BATCH = 50_000
"""Events of one request. SendGrid posts 768 KB at most, some thousands of events."""
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Unreadable(Exception):
    """The event does not have its provider's documented form; a retry cannot help."""


class Unwanted(Exception):
    """An event of a kind that is not applied."""


class Posted:
    """A posted body as raw bytes, and its JSON, parsed once."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    @cached_property
    def json(self) -> object:
        """The JSON value; raises Unreadable."""
        return parse(self.body)

    @property
    def batch(self) -> list[object]:
        """The JSON list; raises Unreadable where it is another value, or too long."""
        if not isinstance(self.json, list):
            raise Unreadable("the body is not a list of events")
        if len(self.json) > MAX_BATCH:
            raise Unreadable(f"more than {MAX_BATCH} events")
        return self.json

    @property
    def event(self) -> Document:
        """The JSON object; raises Unreadable where it is another value."""
        if not isinstance(self.json, dict):
            raise Unreadable("the body is not a JSON object")
        return Document(self.json)


class Document:
    """A JSON value of a provider. A path such as ``"data", "id"`` names a member of its objects.

    ``place`` is the path from the event to this value, for error messages.
    """

    def __init__(self, root: object, place: tuple[str, ...] = ()) -> None:
        self._root = root
        self._place = place

    def value(self, *path: str) -> object:
        """The value at ``path``, or None."""
        value = self._root
        for name in path:
            if not isinstance(value, dict):
                return None
            value = value.get(name)
        return value

    def at(self, *path: str) -> Document:
        """The value at ``path``, which may be absent, as a document."""
        return Document(self.value(*path), (*self._place, *path))

    def has(self, *path: str) -> bool:
        """Whether there is a value that is not null."""
        return self.value(*path) is not None

    def members(self) -> dict[str, object]:
        """The members of the object; empty for another value."""
        return self._root if isinstance(self._root, dict) else {}

    def objects(self, *path: str) -> list[Document]:
        """The objects in the list at ``path``; empty where there is no list."""
        value = self.value(*path)
        items = value if isinstance(value, list) else []
        return [Document(item, (*self._place, *path)) for item in items if isinstance(item, dict)]

    def text(self, *path: str) -> str | None:
        """Text; ``""`` for null; None for a missing member or another type."""
        holder = self.value(*path[:-1])
        if not isinstance(holder, dict) or path[-1] not in holder:
            return None
        value = holder[path[-1]]
        if value is None:
            return ""
        return value if isinstance(value, str) else None

    def first_text(self, *paths: tuple[str, ...]) -> str:
        """The first of these texts that is not empty; ``""`` if there is none."""
        return next((found for path in paths if (found := self.text(*path))), "")

    def flag(self, *path: str) -> bool | None:
        """A boolean; None for anything else."""
        value = self.value(*path)
        return value if isinstance(value, bool) else None

    def texts(self, *path: str) -> tuple[str, ...]:
        """A list of texts, or one text, as a tuple; other values are left out."""
        value = self.value(*path)
        items = value if isinstance(value, list) else [value]
        return tuple(item for item in items if isinstance(item, str) and item)

    def pairs(self, *path: str) -> dict[str, str]:
        """The object at ``path`` as names with plain values."""
        return scalars(self.at(*path).members().items())

    def identifier(self, *path: str) -> str:
        """An id: text of 1 to 255 characters."""
        value = self.value(*path)
        if not isinstance(value, str) or not value:
            raise Unreadable(f"{self._name(path)} is missing")
        if len(value) > MAX_ID:
            raise Unreadable(f"{self._name(path)} is longer than {MAX_ID} characters")
        return value

    def optional_identifier(self, *path: str) -> str | None:
        """As :meth:`identifier`, or None where there is no value."""
        return self.identifier(*path) if self.has(*path) else None

    def moment(self, *path: str) -> datetime:
        """An ISO 8601 time with any number of fractional digits; UTC where it has no offset."""
        return self._required(self.optional_moment(*path), path)

    def optional_moment(self, *path: str) -> datetime | None:
        """As :meth:`moment`, or None if there is no value."""
        value = self.value(*path)
        if not isinstance(value, str):
            return None
        try:
            found = datetime.fromisoformat(value)
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            return None

    def epoch(self, *path: str) -> datetime:
        """Seconds since 1970, or milliseconds: a number below 10^11 is seconds."""
        return self._required(self.optional_epoch(*path), path)

    def optional_epoch(self, *path: str) -> datetime | None:
        """As :meth:`epoch`, or None if there is no value."""
        value = self.value(*path)
        if not isinstance(value, int | float) or isinstance(value, bool):
            return None
        scale = 1_000_000 if in_seconds(value) else 1_000
        try:
            return EPOCH + timedelta(microseconds=round(value * scale))
        except (OverflowError, ValueError):
            return None

    def _required(self, found: datetime | None, path: tuple[str, ...]) -> datetime:
        if found is None:
            raise Unreadable(f"{self._name(path)} is not a time")
        return found

    def _name(self, path: tuple[str, ...]) -> str:
        return ".".join((*self._place, *path))


def parse(body: bytes) -> object:
    """The JSON value in ``body``; raises Unreadable, also for NaN and Infinity."""
    try:
        text = body.decode().removeprefix("\ufeff")
        value = _DECODER.decode(text)
        return _storable(value) if "\\u" in text else value
    except (ValueError, RecursionError) as fault:
        raise Unreadable("the body is not JSON in UTF-8") from fault


def parse_object(body: bytes) -> Document:
    """The JSON object in ``body``; raises Unreadable where it is another value."""
    return Posted(body).event


def scalars(items: Iterable[tuple[str, object]]) -> dict[str, str]:
    """Names with plain values, as text; a list of one counts as its element."""
    found = {}
    for name, value in items:
        plain = value[0] if isinstance(value, list) and len(value) == 1 else value
        if isinstance(plain, str | int | float):
            found[name] = plain if isinstance(plain, str) else json.dumps(plain)
    return found


def address(value: object) -> str:
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


def _storable(value: object) -> object:
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

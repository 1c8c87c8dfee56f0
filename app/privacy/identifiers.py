"""Ids and e-mail addresses that name a person, and finding and replacing them in documents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from app.audit.models import ERASED
from app.core.json_text import dumps_text
from app.inbox.providers.payloads import Unreadable, parse

ERASED_ACTOR = f"platform:{ERASED}"
FEW = 50  # up to so many addresses are searched for one by one, anywhere in a text
NESTED = 4  # encodings inside one another, such as JSON in a text of JSON
JSON_ESCAPES = re.compile(r'(?:\\u[0-9a-fA-F]{4})+|\\["\\/bfnrt]')
ANY_ID = re.compile(
    r"(?!(?i:role|event|message|request))((?i:u?ids?)|.*(_id|Id|ID)s?|sub|subject|user)"
)
PERSONS_ID = re.compile(r"(?!(?i:(idp_)?(org|organization|tenant)s?_?ids?)$)" + ANY_ID.pattern)
SUBJECT = re.compile(r"idp_user_id|subject|platform_admin")
"""Names of fields that hold an id: any; one that may be a person's; an ``idp_user_id`` in our rows."""
ACTOR = re.compile(r"actor|(created|updated)_by_user_id|(created|requested)_by")
WORD = re.compile(r"[^\s<>()\[\],;:\"'=&?/]+")
# What continues an address, so that it is another address: joann@…, mary-ann@…, …@example.com.au
BEFORE, AFTER = r"(?<![a-z0-9])(?<![a-z][.-])", r"(?![a-z0-9]|\.[a-z])"


@dataclass(frozen=True)
class Identifiers:
    """The ids and addresses of one person, or of one organization with its people.

    An id may be any short text, such as ``1`` or ``admin``. So it is found only where it is the
    complete text of a field whose name matches ``fields``. An address is found inside a longer text
    of any field, but not as a part of another address, and its case does not matter. In the field
    of an actor only ``actors`` are found.
    """

    ids: frozenset[str]
    addresses: frozenset[str]
    actors: frozenset[str] = frozenset()
    fields: re.Pattern[str] = PERSONS_ID

    def is_in(self, text: str, field: str = "") -> bool:
        """Whether the field's ``text`` is one of the ids, or contains one of the addresses."""
        return self._is_name(text, field) or self._has_address(text)

    def are_in(self, document: object) -> bool:
        """As :meth:`is_in`, for any text in a JSON document, keys included."""
        is_named = any(self._is_name(*found) for found in _texts(document))
        return is_named or self._has_address(dumps_text(document))

    def are_in_body(self, body: bytes) -> bool:
        """As :meth:`are_in`, for a body of JSON; in another body, ids are found anywhere too."""
        text = body.decode("utf-8", "replace")
        try:
            found = _texts(parse(body))
            return self._has_address(text) or any(self._is_name(*each) for each in found)
        except Unreadable:
            names = [name.lower() for name in self.ids | self.addresses]
            return any(name in form.lower() for form in forms(text) for name in names)

    def _is_name(self, text: str, field: str) -> bool:
        if ACTOR.fullmatch(field):
            return text in self.actors
        is_id = text in self.ids and self.fields.fullmatch(field) is not None
        return is_id or text.lower() in self.addresses

    def _has_address(self, text: str) -> bool:
        return any("@" in form and self._contains_address(form.lower()) for form in forms(text))

    def _contains_address(self, lowered: str) -> bool:
        if len(self.addresses) <= FEW:
            return any(
                "@" in address
                and address in lowered
                and re.search(BEFORE + re.escape(address) + AFTER, lowered)
                for address in self.addresses
            )
        return any("@" in word and word in self.addresses for word in WORD.findall(lowered))

    def redact(self, document: object, field: str = "") -> Any:
        """The document, with each text that contains an identifier replaced by :data:`ERASED`."""
        match document:
            case str() if ACTOR.fullmatch(field):
                return ERASED_ACTOR if document in self.actors else document
            case str():
                return ERASED if self.is_in(document, field) else document
            case list():
                return [self.redact(item, field) for item in document]
            case dict():
                return {
                    self.redact(name): self.redact(item, _within(field, name))
                    for name, item in document.items()
                }
            case _:
                return document


def joined(names: Sequence[Identifiers]) -> Identifiers:
    """The identifiers of several people together."""
    return Identifiers(
        frozenset[str]().union(*(one.ids for one in names)),
        frozenset[str]().union(*(one.addresses for one in names)),
        frozenset[str]().union(*(one.actors for one in names)),
    )


def _texts(document: object, field: str = "") -> Iterator[tuple[str, str]]:
    """Each text of the document with the name of its field; keys are in no field."""
    match document:
        case str():
            yield document, field
        case list():
            for item in document:
                yield from _texts(item, field)
        case dict():
            for name, item in document.items():
                yield name, ""
                yield from _texts(item, _within(field, name))


def _within(outer: str, name: str) -> str:
    """The name of a field; of an ``id`` with the name of the object whose id it is."""
    return f"{outer}_id" if name == "id" and outer else name


def forms(text: str) -> set[str]:
    """The text, and what it is once JSON's escapes and percent-encoding are decoded."""
    found = new = {text}
    for _ in range(NESTED):
        new = {decoded for form in new for decoded in (_unescape(form), unquote(form))} - found
        found = found | new
    return found


def _unescape(text: str) -> str:
    return JSON_ESCAPES.sub(lambda escapes: str(json.loads(f'"{escapes[0]}"')), text)

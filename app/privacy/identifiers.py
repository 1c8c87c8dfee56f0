"""Ids and e-mail addresses that name a person, and finding and replacing them in documents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from app.core.json_text import dumps_text
from app.webhooks.providers.payloads import Unreadable, parse

ERASED = "[erased]"
FEW = 50  # up to so many addresses are searched for one by one, anywhere in a text
NESTED = 4  # encodings inside one another, such as JSON in a text of JSON
JSON_ESCAPES = re.compile(r'(?:\\u[0-9a-fA-F]{4})+|\\["\\/bfnrt]')
WORD = re.compile(r"[^\s<>()\[\],;:\"'=&?/]+")
# What continues an address, so that it is another one: joann@…, mary-ann@…, …@example.com.au
BEFORE, AFTER = r"(?<![a-z0-9])(?<![a-z][.-])", r"(?![a-z0-9]|\.[a-z])"


@dataclass(frozen=True)
class Identifiers:
    """What names one person, or one organization with its people.

    An id may be short, so it is found only where it is a complete text. An address is found
    inside a longer text too, but not as a part of another address, and its case does not matter.
    """

    ids: frozenset[str]
    addresses: frozenset[str]

    def is_in(self, text: str) -> bool:
        """Whether ``text`` is one of the ids, or contains one of the addresses."""
        return self._is_name(text) or self._has_address(text)

    def are_in(self, document: object) -> bool:
        """The same for any text in a JSON document, keys included."""
        return any(map(self._is_name, _texts(document))) or self._has_address(dumps_text(document))

    def are_in_body(self, body: bytes) -> bool:
        """The same for a body of JSON; in one that is no JSON, ids are found anywhere too."""
        text = body.decode("utf-8", "replace")
        try:
            return self._has_address(text) or any(map(self._is_name, _texts(parse(body))))
        except Unreadable:
            names = [name.lower() for name in self.ids | self.addresses]
            return any(name in form.lower() for form in forms(text) for name in names)

    def _is_name(self, text: str) -> bool:
        return (
            text in self.ids
            or text.removeprefix("platform:") in self.ids
            or text.lower() in self.addresses
        )

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

    def redact(self, document: object) -> Any:
        """The document, with each text that contains one of them replaced by :data:`ERASED`."""
        match document:
            case str():
                return ERASED if self.is_in(document) else document
            case list():
                return [self.redact(item) for item in document]
            case dict():
                return {self.redact(name): self.redact(item) for name, item in document.items()}
            case _:
                return document


def _texts(document: object) -> Iterator[str]:
    match document:
        case str():
            yield document
        case list():
            for item in document:
                yield from _texts(item)
        case dict():
            for name, item in document.items():
                yield name
                yield from _texts(item)


def forms(text: str) -> set[str]:
    """The text, and what it is once JSON's escapes and percent-encoding are decoded."""
    found = new = {text}
    for _ in range(NESTED):
        new = {decoded for form in new for decoded in (_unescape(form), unquote(form))} - found
        found = found | new
    return found


def _unescape(text: str) -> str:
    return JSON_ESCAPES.sub(lambda escapes: str(json.loads(f'"{escapes[0]}"')), text)

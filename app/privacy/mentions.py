"""Recognising somebody in stored documents, by the ids and addresses that are theirs alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from app.core.json_text import dumps_text
from app.webhooks.providers.payloads import Unreadable, parse

ERASED = "[erased]"
FEW = 50  # so many addresses are looked for one by one, wherever they stand
ADDRESS = re.compile(r"[^\s<>()\[\],;:\"'=&?/]+@[^\s<>()\[\],;:\"'=&?/]+")


@dataclass(frozen=True)
class Identifiers:
    """What names one person, or one organization with its people: ids and e-mail addresses.

    An id is recognised where it is a whole text, since it may be short; an address inside a
    longer text too, in any case of letters.
    """

    ids: frozenset[str]
    addresses: frozenset[str]

    def is_in(self, text: str) -> bool:
        """Whether ``text`` is, or holds, one of them."""
        lowered = text.lower()
        return (
            text in self.ids
            or text.removeprefix("platform:") in self.ids
            or lowered in self.addresses
            or ("@" in lowered and self._holds_address(lowered))
        )

    def _holds_address(self, lowered: str) -> bool:
        if len(self.addresses) <= FEW:
            return any("@" in address and address in lowered for address in self.addresses)
        return any(word in self.addresses for word in ADDRESS.findall(lowered))

    def are_in(self, document: Any) -> bool:
        """Whether any text in a JSON document does, names of members included."""
        return any(self.is_in(text) for text in _texts(document))

    def are_in_body(self, body: bytes) -> bool:
        """Whether a webhook's body mentions them; one that is no JSON, anywhere in it."""
        try:
            return self.are_in(parse(body))
        except Unreadable:
            text = body.decode("utf-8", "replace")
            return any(name.lower() in text.lower() for name in self.ids | self.addresses)

    def scrub(self, document: Any) -> Any:
        """The document with each text that mentions them replaced."""
        match document:
            case str():
                return ERASED if self.is_in(document) else document
            case list():
                return [self.scrub(item) for item in document]
            case dict():
                return {self.scrub(name): self.scrub(item) for name, item in document.items()}
            case _:
                return document

    def patterns(self) -> list[str]:
        """Patterns for LIKE that find them in lowered JSON text, and perhaps more."""
        spelled = [dumps_text(name)[1:-1].lower() for name in sorted(self.ids | self.addresses)]
        return [f"%{_escaped(name)}%" for name in spelled]


def _texts(document: Any) -> Iterator[str]:
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


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")

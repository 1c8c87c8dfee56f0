"""What a text says once it is decoded, so that a name is found in whatever encoding it stands."""

from __future__ import annotations

import html
import json
import quopri
import re
from base64 import urlsafe_b64decode
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import unquote

DEPTH = 5  # encodings inside one another: JSON in JSON in base 64 …
GROWTH = 32  # the forms of a text have in all at most so many times its length …
SHORT = 100_000  # … and so many characters more
JSON_ESCAPES = re.compile(r'(?:\\u[0-9a-fA-F]{4})+|\\["\\/bfnrt]')
# Words of eight characters and more; a long one may be wrapped into lines.
BASE64 = re.compile(r"[A-Za-z0-9+/]{8,}(?:\r?\n[A-Za-z0-9+/]+)*")
URL_SAFE_BASE64 = re.compile(r"[A-Za-z0-9_-]{8,}")
URL_SAFE = str.maketrans("+/", "-_")


def forms(text: str) -> set[str]:
    """The text, and what it says, completely or in part, once it is decoded.

    Known are JSON's escapes, percent-encoding, HTML's character references, quoted-printable and
    text in base 64, each also inside another. Encodings can be mixed in hundreds of orders, so the
    number of characters is limited: what is decoded in the fewest steps is found first.
    """
    found, steps = {text}, deque([(text, 0)])
    left = GROWTH * len(text) + SHORT
    while steps:
        one, depth = steps.popleft()
        for form in _decoded(one):
            if form in found:
                continue
            left -= len(form)
            if left < 0:
                return found
            found.add(form)
            if depth + 1 < DEPTH:
                steps.append((form, depth + 1))
    return found


def _decoded(text: str) -> Iterator[str]:
    if "\\" in text:
        yield JSON_ESCAPES.sub(lambda escapes: str(json.loads(f'"{escapes[0]}"')), text)
    if "%" in text:
        yield unquote(text)
    if "&" in text:
        yield html.unescape(text)
    if "=" in text:
        yield quopri.decodestring(text.encode("utf-8", "replace")).decode("utf-8", "replace")
    for word in dict.fromkeys(BASE64.findall(text) + URL_SAFE_BASE64.findall(text)):
        if word == word.lower():  # a UUID or an ordinary word: an encoded "@" makes a capital
            continue
        plain = "".join(word.split()).translate(URL_SAFE)
        with suppress(ValueError):  # another word, or data that are not text
            yield urlsafe_b64decode(plain + "=" * (-len(plain) % 4)).decode()

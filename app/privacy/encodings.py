"""What a text says once it is decoded, so that a name is found in whatever encoding it stands."""

from __future__ import annotations

import html
import json
import quopri
import re
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import unquote

DEPTH = 5  # encodings inside one another: JSON in JSON in base 64 …
JSON_ESCAPES = re.compile(r'(?:\\u[0-9a-fA-F]{4})+|\\["\\/bfnrt]')
# Words of eight characters and more; a long one may be wrapped into lines.
BASE64 = re.compile(r"[A-Za-z0-9+/]{8,}(?:\r?\n[A-Za-z0-9+/]+)*")
URL_SAFE_BASE64 = re.compile(r"[A-Za-z0-9_-]{8,}")
URL_SAFE = str.maketrans("+/", "-_")


def forms(text: str) -> set[str]:
    """The text, and what it says, completely or in part, once it is decoded.

    It decodes JSON escapes, percent-encoding, HTML character references, quoted-printable and
    base64, also inside one another.
    """
    found, new = {text}, {text}
    for _ in range(DEPTH):
        new = {form for one in new for form in _decoded(one)} - found
        found |= new
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
    for word in {*BASE64.findall(text), *URL_SAFE_BASE64.findall(text)}:
        if word == word.lower():  # a UUID or an ordinary word: an encoded "@" makes a capital
            continue
        plain = "".join(word.split()).translate(URL_SAFE)
        with suppress(ValueError):  # another word, or data that are not text
            yield urlsafe_b64decode(plain + "=" * (-len(plain) % 4)).decode()

"""The form of the setting of a logo: a file that is checked, because browsers of strangers show it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn
from xml.parsers import expat

MAX_LOGO = 64 * 1024  # bytes
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
SVG, XHTML = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml"
ANIMATIONS = ("set", "animate", "animatemotion", "animatetransform")
FORBIDDEN = {
    "script": "a script",
    "foreignobject": "a foreignObject",
    **dict.fromkeys(ANIMATIONS, "an animation"),
}
# What can be loaded, except parts of the file itself.
EXTERNAL = re.compile(r"url\((?!\s*['\"]?#)|@import|image-set|src\(|javascript:", re.IGNORECASE)


class Logo(NamedTuple):
    """The content of a logo's file."""

    content: bytes
    content_type: str


def parse_logo(value: str) -> Logo:
    """The SVG or PNG file at that path."""
    try:
        with Path(value.strip()).open("rb") as file:
            content = file.read(MAX_LOGO + 1)
    except OSError as fault:
        raise ValueError(f"is not a readable file ({fault.strerror})") from None
    if len(content) > MAX_LOGO:
        raise ValueError(f"must be at most {MAX_LOGO // 1024} KiB")
    if content.startswith(PNG):
        return Logo(content, "image/png")
    _check_svg(content)
    return Logo(content, "image/svg+xml; charset=utf-8")


def _check_svg(content: bytes) -> None:
    """Raise ValueError for what is no SVG, or could run or load something."""
    parser, styles, elements = expat.ParserCreate(namespace_separator=" "), list[str](), list[str]()

    def begin(name: str, attributes: Mapping[str, str]) -> None:
        namespace, _, element = name.rpartition(" ")
        if not elements and (namespace, element) != (SVG, "svg"):
            raise ValueError("is an XML file, but not an SVG")
        elements.append(element.lower())
        if elements[-1] in FORBIDDEN or namespace == XHTML:
            _refuse(FORBIDDEN.get(elements[-1], "HTML"))
        for attribute, text in attributes.items():
            _check_attribute(attribute.rpartition(" ")[2].lower(), text)

    def read(text: str) -> None:
        if "style" in elements:
            styles.append(text)

    parser.StartElementHandler = begin
    parser.EndElementHandler = lambda _: elements.pop() if len(elements) > 1 else None
    parser.CharacterDataHandler = read
    parser.StartDoctypeDeclHandler = lambda *_: _refuse("a DOCTYPE or entities")
    parser.ProcessingInstructionHandler = lambda *_: _refuse("a processing instruction")
    try:
        parser.Parse(content.decode(), True)
    except (expat.ExpatError, UnicodeDecodeError) as fault:
        raise ValueError(f"is neither a PNG nor a well-formed SVG ({fault})") from None
    _check_attribute("style", "".join(styles))


def _check_attribute(name: str, text: str) -> None:
    if name.startswith("on"):
        _refuse("an event handler")
    leads_out = name in ("base", "src") or (name == "href" and not text.strip().startswith("#"))
    hides_name = name == "style" and "\\" in text
    if leads_out or hides_name or EXTERNAL.search(text):
        _refuse("an external reference")


def _refuse(what: str) -> NoReturn:
    raise ValueError(f"is an SVG with {what}; remove it from the file")

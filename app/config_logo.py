"""The form of the setting of a logo: a file that is checked, because browsers of strangers show it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

MAX_LOGO = 64 * 1024  # bytes
MAX_SIDE = 4096  # pixels; a small file can be a drawing that fills a browser's memory
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
SVG = "{http://www.w3.org/2000/svg}"
DECLARATION = re.compile(r"<!DOCTYPE|<\?(?!xml\s)")
ACTIVE = re.compile(r"script|foreignobject|set|animate.*")
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
        if max(int.from_bytes(content[16:20]), int.from_bytes(content[20:24])) > MAX_SIDE:
            raise ValueError(f"must be at most {MAX_SIDE} pixels wide and high")
        return Logo(content, "image/png")
    _check_svg(content)
    return Logo(content, "image/svg+xml; charset=utf-8")


def _check_svg(content: bytes) -> None:
    """Raise ValueError for a file that is not an SVG, or that could run or load something."""
    try:
        text = content.decode()
        if found := DECLARATION.search(text):
            raise ValueError(f"is an SVG with {found[0]}; remove it from the file")
        root = ElementTree.fromstring(text)  # noqa: S314
    except (ElementTree.ParseError, UnicodeDecodeError) as fault:
        raise ValueError(f"is neither a PNG nor a well-formed SVG ({fault})") from None
    if root.tag != f"{SVG}svg":
        raise ValueError("is an XML file, but not an SVG")
    for element in root.iter():
        name = element.tag.removeprefix(SVG)
        if "xhtml" in name or ACTIVE.fullmatch(name.rpartition("}")[2].lower()):
            raise ValueError(f"is an SVG with {name}; remove it from the file")
        texts = [element.text, *(child.tail for child in element)]  # as browsers read a style
        style = "".join(text or "" for text in texts) if name.lower() == "style" else ""
        for attribute, value in [*element.items(), ("style", style)]:
            if _does_something(attribute.rpartition("}")[2].lower(), value):
                raise ValueError(f"is an SVG with {name} {attribute}; remove it from the file")


def _does_something(attribute: str, text: str) -> bool:
    """Whether the attribute handles an event, or loads something outside the file."""
    leads_out = attribute == "href" and not text.strip().startswith("#")
    is_active = attribute.startswith("on") or attribute in ("base", "src")
    return is_active or leads_out or "\\" in text or EXTERNAL.search(text) is not None

"""JSON and other text for a terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

from .times import rfc3339

OF_HTTP = re.compile(r"`(?:If-|X-|Retry-|GET |meta_data[.\[]|q` and)|ETag")
"""What only sentences about HTTP have."""


def in_words(text: str, labels: Mapping[str, str]) -> str:
    """A description of the API in a command's words, with its ``labels`` of the API's arguments.

    Sentences about HTTP, and the numbers of refusals, are left out.
    """
    sentences = re.findall(r"(?s).+?(?:\.\s|\Z)", re.sub(r"\n +", "\n", text))
    text = "".join(one for one in sentences if not OF_HTTP.search(one))
    text = re.sub(r"\[([^]]+)\]\(\.\./([^)#]+)[^)]*\)", r"\1 (docs/\2)", text)
    text = re.sub(r"\*\*|\b4\d\d\s+(?=`)| \((?:4\d\d|RFC \d+)\)", "", text)

    def labelled(found: re.Match[str]) -> str:
        label, value = labels.get(found[1]), found[2]
        if label is None or value in (None, "true"):
            return label or found[0]
        return f"--no-{label[2:]}" if value == "false" else f"{label} {value}"

    return re.sub(r"`\??(\w+)(?:=(\w+))?`", labelled, text)


def print_json(value: Any, *, err: bool = False) -> None:
    """Print ``value`` as indented JSON, with dates by RFC 3339 and ids as text."""
    click.echo(json.dumps(value, default=plain, ensure_ascii=False, indent=2), err=err)


def print_text(text: str, value: Any, *, as_json: bool) -> None:
    """Print a text for people, or the value in JSON for scripts."""
    if as_json:
        print_json(value)
    else:
        click.echo(text)


def compact(value: Any) -> str:
    """The value as JSON without spaces."""
    return json.dumps(value, default=plain, ensure_ascii=False, separators=(",", ":"))


def plain(value: object) -> str:
    """A datetime by RFC 3339; anything else, such as an id, as its text."""
    return rfc3339(value) if isinstance(value, datetime) else str(value)


def printable(text: str) -> str:
    """The text with a space for each control character, which a terminal might obey."""
    return "".join(one if one.isprintable() else " " for one in text)

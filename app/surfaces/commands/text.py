"""JSON and other text for a terminal."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import click

from .times import rfc3339


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

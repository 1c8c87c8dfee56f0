"""YAML files that commands apply: reading one, and showing what it differs in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import IO, Any

import click
import yaml

from app.core.errors import Invalid
from app.core.json_text import Json
from app.core.validation.schemas import Schema
from app.surfaces.commands.output import print_rows
from app.surfaces.commands.refusals import reason

NAMES = ("name", "flag_key", "key")
"""The fields by which a row in a file is called, instead of by its number."""


def read_file(file: IO[bytes], schema: Schema) -> dict[str, Any]:
    """The values of a file; raises UsageError, with all faults in it."""
    document: Json = None
    try:
        # By way of JSON: a date or another type of YAML alone is refused.
        document = json.loads(json.dumps(yaml.safe_load(file.read()), allow_nan=False))
        values = schema.load(document)
        if errors := list(schema.rules(values)):
            raise Invalid(*errors)
        return values
    except Invalid as fault:
        told = (f"{_place(document, one['loc'])}: {reason(one)}" for one in fault.errors)
        raise click.UsageError("; ".join(told).removeprefix(": ")) from None
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as fault:
        message = f"This is not YAML with JSON's types (put dates in quotes): {fault}"
        raise click.UsageError(message) from None


def print_differences(
    found: Sequence[Any], fields: Sequence[str], *, dry_run: bool, as_json: bool
) -> None:
    """Print what a file has changed, or would change: named tuples with these fields."""
    if found or as_json:
        print_rows([one._asdict() for one in found], fields, as_json=as_json)
    if not as_json:
        told = "would differ; nothing was changed" if dry_run else "changed"
        click.echo(f"{len(found)} {told}." if found else "No difference.", err=True)


def _place(document: Json, loc: Iterable[str | int]) -> str:
    """A place in a file, such as ``plans.growth.flags.seats``."""
    words = []
    for part in loc:
        is_row = isinstance(document, list) and isinstance(part, int)
        document = document[part] if is_row else document.get(part)
        row = document if is_row and isinstance(document, dict) else {}
        words.append(str(next((row[name] for name in NAMES if row.get(name)), part)))
        if not isinstance(document, dict | list):
            document = {}
    return ".".join(words)

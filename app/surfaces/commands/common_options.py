"""Which arguments a generated command takes, and the options that are not its operation's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import click

from ..operations import JSON, Argument, Operation
from .names import CONFIRMED, Spelling
from .parameters import OPTIONS, REFUSED_HEADERS
from .resolver import NARROWED


def offered(operation: Operation, spelling: Spelling) -> list[Argument]:
    """The arguments of a command; only those that it needs if its fields are fixed."""
    is_variant = any(
        one.name in spelling.fixed for one in operation.arguments if one.place == "body"
    )
    found = [
        one
        for one in operation.arguments
        if one.name not in (*spelling.fixed, *REFUSED_HEADERS, CONFIRMED.get(operation.name))
        and (one.required or one.place != "body" or not is_variant)
        and not (one.name == "include" and "as_of" in spelling.positional)
    ]
    for place, one in enumerate(found):
        if one.name in spelling.defaults:
            schema = {**one.schema, "default": spelling.defaults[one.name]}
            found[place] = replace(one, required=False, schema=schema)
    return found


def further_options(
    operation: Operation, spelling: Spelling, arguments: list[Argument], *, asks: bool
) -> Iterator[click.Option]:
    """The options that are not the operation's own."""
    names = {OPTIONS.get(one.name) for one in arguments}
    yield click.Option(["--json", "as_json"], is_flag=True, help="Print JSON, for scripts.")
    if names & set(NARROWED) and "tenant" not in names:
        yield click.Option(["--tenant", "within"], help="Only in this tenant (slug or id).")
    if operation.page_parameter:
        yield click.Option(["--all", "page_all"], is_flag=True, help="Read all pages.")
    if operation.media_type == JSON and not spelling.fixed:
        yield click.Option(
            ["--body"],
            type=click.File("r", encoding="utf-8"),
            callback=_read_json,
            metavar="FILE",
            help="All fields as a JSON file (- is standard input); options take precedence.",
        )
    elif operation.media_type not in (None, JSON):
        yield click.Option(
            ["--body"],
            type=click.File("rb"),
            callback=lambda ctx, param, file: file.read(),
            required=True,
            metavar="FILE",
            help=f"The file, {operation.media_type} (- is standard input).",
        )
    if asks:
        yield click.Option(["--yes"], is_flag=True, help="Do not ask.")


def _read_json(ctx: click.Context, param: click.Parameter, file: Any) -> Any:
    if file is None:
        return None
    try:
        return json.load(file)
    except (ValueError, RecursionError) as fault:
        raise click.BadParameter(f"This is not JSON: {fault}", ctx, param) from None

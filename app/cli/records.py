"""Options and output of commands, which use the schemas of the API."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

import click

from app.cli.base import print_fields, print_json, print_rows, reason, written
from app.core.db.pages import ListOrder, Page, Paging
from app.core.errors import Entry, Invalid
from app.core.validation.schemas import Schema

F = TypeVar("F", bound=Callable[..., Any])

set_option = click.option(
    "--set", "fields", multiple=True, metavar="FIELD=VALUE", help="Set a field; may be repeated."
)


def paging_options(order: ListOrder = ListOrder.OLDEST_FIRST) -> Callable[[F], F]:
    """Add the options of a list, whose default order is ``order``; the command gets ``paging``."""

    def add(command: F) -> F:
        @click.option(
            "--limit",
            default=100,
            show_default=True,
            type=click.IntRange(1),
            help="The largest number of rows.",
        )
        @click.option(
            "--order",
            default=order.value,
            show_default=True,
            type=click.Choice([each.value for each in ListOrder]),
            help="Oldest first, or newest first with a minus.",
        )
        @wraps(command)
        def run(*args: Any, limit: int, order: str, **options: Any) -> Any:
            return command(*args, paging=Paging(limit, order=ListOrder(order)), **options)

        return run  # type: ignore[return-value]

    return add


def load(schema: type[Schema], given: Mapping[str, Any]) -> dict[str, Any]:
    """Load the options that are not None by ``schema``; raises UsageError for invalid values."""
    return checked(schema, {name: value for name, value in given.items() if value is not None})


def checked(schema: type[Schema], given: Mapping[str, Any]) -> dict[str, Any]:
    """Load all options by ``schema``, None too; raises UsageError for invalid values.

    Raises Invalid where the values do not satisfy the schema's rules.
    """
    try:
        values: dict[str, Any] = schema().load(dict(given))
    except Invalid as refusal:
        faults = [f"{written(entry['loc'])}: {_told(entry, schema)}" for entry in refusal.errors]
        raise click.UsageError("; ".join(faults)) from None
    errors = list(schema().rules(values))
    if errors:
        raise Invalid(*errors)
    return values


def _told(fault: Entry, schema: type[Schema]) -> str:
    """What is wrong with a value; of a field that ``schema`` lacks, which fields there are."""
    if fault["type"] == "extra_forbidden" and len(fault["loc"]) == 1:
        return f"no such field; there are: {', '.join(schema().inputs)}"
    return reason(fault)


def assignments(
    fields: Iterable[str], *, option: str = "--set", form: str = "FIELD=VALUE"
) -> dict[str, str]:
    """The names and values of an option, such as ``--set FIELD=VALUE``."""
    pairs = [field.partition("=") for field in fields]
    for name, separator, _ in pairs:
        if not separator:
            raise click.UsageError(f"{option} {name}: write {form}.")
    return {name: value for name, _, value in pairs}


def from_json(text: str | None) -> Any:
    """The value of an option or argument that is JSON; raises UsageError for other text."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise click.UsageError(
            f"This is not JSON, such as true, 10 or '\"text\"' with its quotes: {fault}."
        ) from None


def print_list(
    rows: Sequence[Any], schema: Schema, columns: Sequence[str], *, as_json: bool
) -> None:
    """Print rows as a table of ``columns``, or as JSON with all fields of the schema."""
    shown = [schema.dump(row) for row in rows]
    if as_json:
        print_json(shown)
    else:
        print_rows(shown, columns, as_json=False)


def print_page(page: Page, schema: Schema, columns: Sequence[str], *, as_json: bool) -> None:
    """Print the rows of a page as :func:`print_list`."""
    print_list(page.items, schema, columns, as_json=as_json)
    tell_of_more(page)


def tell_of_more(page: Page) -> None:
    """Say on standard error that ``--limit`` leaves rows out, where it does."""
    if page.next_cursor is not None:
        click.echo("There are more rows: give a larger --limit.", err=True)


def print_one(row: Any, schema: Schema, *, as_json: bool) -> None:
    """Print one row as a table of its fields, or as a JSON object."""
    shown = schema.dump(row)
    if as_json:
        print_json(shown)
    else:
        print_fields(shown)

"""What all command groups share: the transaction, the error messages, the output.

Results go to standard output. Logs, progress and prompts go to standard error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import wraps
from typing import Any, TypeVar

import click
import psycopg2
from flask import current_app
from flask.cli import AppGroup
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from app.core.db import tenancy
from app.core.db.transactions import RowChanged, transaction
from app.core.errors import AppError, Entry, Invalid, Location, NotFound, first_line
from app.core.json_text import dumps_text, plain

F = TypeVar("F", bound=Callable[..., Any])

ROWS = {
    "address": "suppressed address",
    "connection_id": "SCIM connection",
    "feature": "limit",
    "resume": "import",
    "subject": "platform superadmin",
}
"""What an argument names whose name is not that of a row and ``_id``."""

MAX_CELL = 500  # characters of a value in a table of rows

yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")


def operator(command: F) -> F:
    """Run a command in one transaction that sees every tenant; errors as :func:`one_line_errors`."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        with transaction():
            tenancy.enter(tenancy.PLATFORM)
            return command(*args, **kwargs)

    return one_line_errors(run)  # type: ignore[return-value]


def one_line_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Print an error of the service or of PostgreSQL as one line, with exit code 1."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except Invalid as refusal:
            # The first part of ``loc`` is that of the request, such as ``body``.
            faults = [f"{written(fault['loc'][1:])}: {reason(fault)}" for fault in refusal.errors]
            raise click.ClickException("; ".join(faults)) from None
        except NotFound as refusal:
            raise click.ClickException(_missing_row(refusal)) from None
        except AppError as refusal:
            raise click.ClickException(refusal.detail or "Not found.") from None
        except RowChanged:
            raise click.ClickException(
                "Another transaction changed this row at the same time. Run the command again."
            ) from None
        except UnicodeEncodeError as fault:
            raise click.UsageError(f"This is not UTF-8: {fault.object[:100]!a}") from None
        except psycopg2.Error as fault:
            raise click.ClickException(f"PostgreSQL: {first_line(fault)}") from None

    return run


def ask(question: str, *, yes: bool) -> None:
    """Ask on standard error, unless ``yes``. Without consent the command ends with exit code 1.

    Call it outside a transaction: PostgreSQL ends one that waits for a person.
    """
    if yes:
        return
    try:
        click.confirm(printable(question), abort=True, err=True)
    except click.Abort:
        raise click.ClickException("Nothing was changed. With --yes nothing is asked.") from None


def local_address() -> str:
    """The URL of the service on this machine: that of the last ``flask dev``."""
    address: Callable[[], str] = current_app.extensions["local_address"]
    return address()


def reason(fault: Entry) -> str:
    """What is wrong with a value, for people: without the words that FastAPI's clients expect.

    A value that violates our own rule is named, because it may be one of several in an option.
    """
    told, value = str(fault["msg"]).removeprefix("Value error, "), fault["input"]
    if fault["type"] == "value_error" and value and isinstance(value, str):
        return f"{told}: {printable(value[:100])}"
    return told


def written(loc: Location) -> str:
    """The place of a fault in the words of the command: ``--email``, or ``JSON.team``.

    A parameter of the command whose ``name`` is the API's replaces it; other names stay as they
    are, such as those of ``--set``.
    """
    field, *inner = map(str, loc)
    for parameter in click.get_current_context().command.params:
        if parameter.name == field:
            is_option = isinstance(parameter, click.Option)
            field = parameter.opts[0] if is_option else parameter.human_readable_name
            break
    return ".".join([field, *inner])


def _missing_row(refusal: NotFound) -> str:
    """Which row is missing, by the command's words: ``There is no endpoint 17.``"""
    if refusal.detail == NotFound.detail:
        for name, value in click.get_current_context().params.items():
            kind = ROWS.get(name) or name.removesuffix("_id")
            if kind != name and isinstance(value, str):
                return f"There is no {kind} {printable(value)}."
    return refusal.detail


def print_json(value: Any) -> None:
    """Print ``value`` as indented JSON, with dates by RFC 3339 and ids as text."""
    click.echo(json.dumps(value, default=plain, ensure_ascii=False, indent=2))


def print_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, as_json: bool) -> None:
    """Print rows as a table for people, or as a JSON array of the columns for scripts."""
    chosen = [{name: row[name] for name in columns} for row in rows]
    if as_json:
        print_json(chosen)
        return
    if not chosen:
        click.echo("No rows.", err=True)
        return
    table = Table(*columns)
    for row in chosen:
        table.add_row(*map(_short_cell, row.values()))
    _print_fitting(table, chosen)


def print_fields(row: Mapping[str, Any]) -> None:
    """Print one row as a table of its fields and values."""
    table = Table("field", "value")
    for name, value in row.items():
        table.add_row(name, _cell(value))
    _print_fitting(table, [row])


def _print_fitting(table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the table; on a terminal too narrow for it, each row as lines of ``name: value``."""
    console = Console()
    needed = console.measure(table, options=console.options.update(max_width=1 << 20)).maximum
    if needed <= console.width or not sys.stdout.isatty():
        Console(width=max(console.width, needed)).print(table)  # Rich would truncate long ids
        return
    for row in rows:
        indent = max(map(len, row)) + 2
        lines = [f"{name + ':':<{indent}}{_cell(value)}" for name, value in row.items()]
        click.echo("\n".join(lines) + "\n")


def progress_bar() -> Progress:
    """A progress bar on standard error, which disappears at its end."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


def _cell(value: Any) -> Text:
    """A value's printable text, without markup."""
    match value:
        case None:
            text = ""
        case bool() | dict() | list():
            text = dumps_text(value)
        case _:
            text = plain(value) if isinstance(value, datetime) else str(value)
    return Text(printable(text))


def _short_cell(value: Any) -> Text:
    """As :func:`_cell`, cut after :data:`MAX_CELL` characters, as one row makes all others as wide."""
    cell = _cell(value)
    cell.truncate(MAX_CELL, overflow="ellipsis")
    return cell


def printable(text: str) -> str:
    """The text with a space for each control character, which a terminal might obey."""
    return "".join(one if one.isprintable() else " " for one in text)


__all__ = [
    "AppGroup", "F", "ask", "json_option", "local_address", "one_line_errors", "operator",
    "print_fields", "print_json", "print_rows", "printable", "progress_bar", "reason", "written",
    "yes_option",
]  # fmt: skip

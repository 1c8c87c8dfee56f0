"""Tables and blocks on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from ..operations import NOT_SHOWN
from .text import compact, plain, print_json, printable
from .times import relative

MAX_CELL = 500  # characters of a value in a table of rows
FEW_FIELDS = 4
CHANGES = "changes"  # a column of audit rows


def print_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, as_json: bool) -> None:
    """Print rows as a table for people, or as a JSON array of the columns for scripts.

    A column such as ``user.email`` is in the table only.
    """
    if as_json:
        print_json([{name: row[name] for name in columns} for row in rows])
        return
    chosen = [{name: _part(row, name) for name in columns} for row in rows]
    if not chosen:
        click.echo("No rows.", err=True)
        return
    table = Table(*columns)
    for row in chosen:
        table.add_row(*map(_short_cell, row.values()))
    _print_fitting(table, chosen)


def print_fields(row: Mapping[str, Any], *, as_json: bool = False) -> None:
    """Print one row as a table of its fields, and a table for each list of rows that it has."""
    if as_json:
        print_json(row)
        return
    lists = {name: value for name, value in row.items() if _is_rows(value)}
    table = Table("field", "value")
    fields = {name: value for name, value in row.items() if name not in lists}
    for name, value in fields.items():
        table.add_row(name, _cell(value))
    if fields:
        _print_fitting(table, [fields])
    for name, rows in lists.items():
        click.echo(f"\n{name}:")
        print_rows(rows, list(dict.fromkeys(key for one in rows for key in one)), as_json=False)


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def _part(row: Mapping[str, Any], column: str) -> Any:
    """The value of a column; that of ``user.email`` is in the object ``user``."""
    if column == CHANGES:
        return net_changes_of(row) if column in row else changes_of(row)
    value: Any = row
    for name in column.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def changes_of(event: Mapping[str, Any]) -> str:
    """The changed fields with both values; empty for a new or a deleted row with many fields."""
    before, after = event["before"] or {}, event["after"] or {}
    both = [name for name in after if name in before]
    shown = [f"{name}: {compact(before[name])} → {compact(after[name])}" for name in both]
    one = before or after
    if not shown and len(one) <= FEW_FIELDS:  # such as plan, end and reason of an assigned plan
        shown = [f"{name}: {compact(value)}" for name, value in one.items()]
    return "; ".join(shown)


def net_changes_of(row: Mapping[str, Any]) -> str:
    """The fields that differ with both values; of a new or deleted row, those with a value."""
    known = {name: one for name, one in row[CHANGES].items() if one["before"] != one["after"]}
    both = [name for name in known if name not in (*NOT_SHOWN, "id")]
    if not both:
        return "" if "id" in known or "actions" not in row else "no net change"
    return "; ".join(
        f"{name}: {compact(known[name]['before'])} → {compact(known[name]['after'])}"
        for name in both
    )


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
        disable=not sys.stderr.isatty(),  # it would leave an empty line
    )


def _cell(value: Any) -> Text:
    """A value's printable text, without markup; a time with its distance from now."""
    match value:
        case None:
            text = ""
        case bool() | dict() | list():
            text = compact(value)
        case _:
            text = plain(value)
    distance = relative(text)
    return Text(printable(f"{text} ({distance})" if distance else text))


def _short_cell(value: Any) -> Text:
    """As :func:`_cell`, cut after :data:`MAX_CELL` characters, as one row makes all others as wide."""
    cell = _cell(value)
    cell.truncate(MAX_CELL, overflow="ellipsis")
    return cell

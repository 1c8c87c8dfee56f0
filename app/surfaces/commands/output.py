"""Tables and blocks on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from ..operations import NOT_SHOWN
from .text import compact, plain, print_json, printable
from .times import relative

MAX_LIST = 40  # characters of a list in a table that does not fit
WRAPPED = 30, 16  # characters of a wrapped text, at least; fewer before blocks
FEW_FIELDS = 4
CHANGES = "changes"  # a column of audit rows
NEVER_CHANGE = ("id", "created_at", "tenant_id")
EMPTY: tuple[Any, ...] = (None, "", [], {})


def print_rows(
    rows: Iterable[Mapping[str, Any]],
    columns: Sequence[str],
    *,
    as_json: bool,
    keeps_id: bool = False,
) -> None:
    """Print rows as a table for people, or as a JSON array of the columns for scripts.

    A column such as ``user.email`` is in the table only. With ``keeps_id`` a narrow table has ids.
    """
    if as_json:
        print_json([{name: row[name] for name in columns} for row in rows])
        return
    chosen = [{name: _part(row, name) for name in columns} for row in rows]
    if not chosen:
        click.echo("No rows.", err=True)
        return
    _print_fitting(_narrowed(chosen, keeps_id=keeps_id), chosen)


def print_fields(row: Mapping[str, Any], *, as_json: bool = False) -> None:
    """Print one row as a table of its fields, and a table for each list of rows that it has."""
    if as_json:
        print_json(row)
        return
    many = {name: value for name, value in row.items() if value and isinstance(value, list)}
    lists = {name: many[name] for name in many if all(isinstance(one, dict) for one in many[name])}
    fields = {name: value for name, value in row.items() if name not in lists}
    if fields:
        _print_fitting([{"field": name, "value": fields[name]} for name in fields], [fields])
    for name, rows in lists.items():
        click.echo(f"\n{name}:")
        print_rows(rows, list(dict.fromkeys(key for one in rows for key in one)), as_json=False)


def _part(row: Mapping[str, Any], column: str) -> Any:
    """The value of a column; that of ``user.email`` is in the object ``user``."""
    if column == CHANGES:
        return net_changes_of(row) if column in row else changes_of(row)
    if column == "actors":
        return ", ".join(row[column])
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
    """The fields that differ with both values; of a new or deleted row, this word and its values."""
    known = {name: one for name, one in row[CHANGES].items() if one["before"] != one["after"]}
    both = [name for name in known if name not in (*NOT_SHOWN, *NEVER_CHANGE)]
    own = known.get("id", known.get("created_at"))
    if own is None:
        before, after = ({name: known[name][side] for name in both} for side in ("before", "after"))
        return changes_of({"before": before, "after": after}) or (
            "no net change" if "actions" in row else ""
        )
    side, word = ("after", "created") if own["before"] is None else ("before", "deleted")
    values = {name: known[name][side] for name in both}
    shown = [f"{name}: {compact(one)}" for name, one in values.items() if one not in EMPTY]
    return "; ".join([word] * ("actions" in row) + shown)


def _narrowed(rows: Sequence[dict[str, Any]], *, keeps_id: bool) -> Sequence[dict[str, Any]]:
    """The rows without what is needed least, so that they fit as a table on this terminal.

    Lists and times are shortened, and empty columns left out; then, where wrapped texts do not fit,
    times, ids of others and the own id, but no time in the first column. With ``keeps_id`` the last
    columns go instead of the own id, as long as three are left. Else all stays as it is.
    """
    if _fits(rows, sys.maxsize):
        return rows
    filled = [name for name in rows[0] if any(text_of(row[name]) for row in rows)]
    shown = [{name: _shortened(row[name]) for name in filled} for row in rows]
    first, *others = rows[0]
    least = [one for end in ("_at", "_id") for one in reversed(others) if one.endswith(end)]
    if keeps_id:
        least += [one for one in reversed(others[2:]) if one not in least]
    elif first == "id":
        least.append("id")
    for left_out in least:
        if not _fits(shown, WRAPPED[0]):
            shown = [{name: row[name] for name in row if name != left_out} for row in shown]
    if not _fits(shown, WRAPPED[1]):
        return rows
    click.echo("To fit, some values are shortened or left out: --json prints all.", err=True)
    return shown


def _shortened(value: Any) -> Any:
    """The value; a time as its distance, a long list or object as the beginning of its text."""
    text = compact(value)
    if text[0] in "[{" and len(text) > MAX_LIST:
        return f"{text[: MAX_LIST - 1]}…"
    return relative(plain(value)) or value


def _fits(rows: Sequence[Mapping[str, Any]], least: int) -> bool:
    """Whether the rows fit as a table, with texts of ``least`` characters. In a pipe all fits."""
    widths = [max(_width(text, least) for text in _column(rows, name)) for name in rows[0]]
    return not sys.stdout.isatty() or sum(widths) + 3 * len(widths) < Console().width


def _column(rows: Sequence[Mapping[str, Any]], name: str) -> list[str]:
    return [name, *(text_of(row[name]) for row in rows)]


def _width(text: str, least: int) -> int:
    """The width of a text that is wrapped to ``least`` characters; at last, JSON within a word."""
    words = [] if least <= WRAPPED[1] and text[:1] in ("[", "{") else text.split()
    return min(cell_len(text), max([least, *map(cell_len, words)]))


def _print_fitting(rows: Sequence[Mapping[str, Any]], blocks: Sequence[Mapping[str, Any]]) -> None:
    """Print the rows as a table, in a pipe with tabs; or the blocks as lines of ``name: value``."""
    lines = [[*rows[0]], *([text_of(value) for value in row.values()] for row in rows)]
    if not sys.stdout.isatty():
        click.echo("\n".join(map("\t".join, lines)))
    elif _fits(rows, WRAPPED[1]):
        table = Table()
        for name in rows[0]:
            is_rigid = all(_width(text, 1) == cell_len(text) for text in _column(rows, name))
            table.add_column(name, no_wrap=is_rigid, overflow="fold")
        for line in lines[1:]:
            table.add_row(*map(Text, line))
        Console().print(table)
    else:
        for block in blocks:
            indent = max(map(len, block)) + 2
            told = [f"{name + ':':<{indent}}{text_of(value)}" for name, value in block.items()]
            click.echo("\n".join(told) + "\n")


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


def text_of(value: Any) -> str:
    """A value's printable text; on a terminal, a time with its distance from now."""
    match value:
        case None:
            text = ""
        case dict() if value and all(isinstance(one, dict) for one in value.values()):
            of = [", ".join(f"{one} {what}" for what, one in of.items()) for of in value.values()]
            text = "; ".join(map(": ".join, zip(value, of, strict=True)))
        case bool() | dict() | list():
            text = compact(value)
        case _:
            text = plain(value)
    distance = relative(text) if sys.stdout.isatty() else ""
    return printable(f"{text} ({distance})" if distance else text)

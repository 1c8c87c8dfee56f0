"""Rows as CSV (RFC 4180), for spreadsheets."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from io import StringIO

from app.core.json_text import dumps_text, plain

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""A spreadsheet reads a text that begins with one of these as a formula."""


def as_csv(names: Iterable[str], rows: Iterable[Mapping[str, object]]) -> str:
    """A line with ``names``, then a line for each row. All cells are in quotation marks.

    Objects are written as JSON, times as RFC 3339. A cell that a spreadsheet would read as a
    formula gets an apostrophe at its beginning.
    """
    columns = list(names)
    file = StringIO(newline="")
    writer = csv.writer(file, quoting=csv.QUOTE_ALL)
    writer.writerow(columns)
    writer.writerows([_cell(row[name]) for name in columns] for row in rows)
    return file.getvalue()


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case str():
            text = value
        case dict():
            text = dumps_text(value)
        case _:
            text = plain(value)
    return f"'{text}" if text.startswith(FORMULA) else text

"""Shared by the exports of a person and of a tenant: rows by table, and a row as JSON."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from uuid import UUID

from sqlalchemy import Row, Select, func, select

from app.core.json_text import plain
from app.privacy import mentions
from app.privacy.mentions import Reader

Rows = Iterable[Row | Mapping[str, object]]
Tables = Mapping[str, Callable[[], Rows]]
"""For each table a function that reads its rows."""

SECRET = frozenset({"digest", "old_digest", "replay_key", "session_digest"})
"""Columns that are not exported, because only an attacker could use them."""


def mail_rows(
    reader: Reader, addresses: Sequence[str] | Select[tuple[str]]
) -> dict[str, Callable[[], Rows]]:
    """The rows of each e-mail table that have one of the addresses."""
    return {
        table.name: partial(
            reader.rows, select(table).where(func.lower(table.c.address).in_(addresses))
        )
        for table in mentions.MAILS
    }


def as_json(row: Row | Mapping[str, object]) -> dict[str, object]:
    """A row as values of JSON; bytes that are not UTF-8 are encoded in base 64."""
    values = row._mapping if isinstance(row, Row) else row
    return {name: _plain(value) for name, value in values.items() if name not in SECRET}


def _plain(value: object) -> object:
    match value:
        case datetime() | UUID():
            return plain(value)
        case Decimal():
            return str(value)
        case bytes() | memoryview():
            return _text(bytes(value))
    return value


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"base64:{b64encode(value).decode()}"

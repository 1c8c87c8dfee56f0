"""What the privacy tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg2
import pytest
from flask import Flask

from app.dev.engines.instance import DATABASE, Instance
from app.dev.engines.postgres import SUPERUSER
from tests.webhooks.sending import Sender


@pytest.fixture
def sender(app: Flask, monkeypatch: pytest.MonkeyPatch) -> Sender:
    return Sender(app, monkeypatch)


@pytest.fixture
def dump(app: Flask, instance: Instance) -> Iterator[Callable[[], str]]:
    """Call it for every row of every table as text, as the superuser sees them."""
    session = psycopg2.connect(host=str(instance.sockets), user=SUPERUSER, dbname=DATABASE)
    session.autocommit = True

    def read() -> str:
        with session.cursor() as cursor:
            cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
            tables = [name for (name,) in cursor.fetchall()]
            lines = []
            for table in tables:
                cursor.execute(f'SELECT * FROM "{table}"')
                lines += [f"{table} {_text(row)}" for row in cursor.fetchall()]
            return "\n".join(lines)

    yield read
    session.close()


def _text(row: tuple[Any, ...]) -> str:
    return " | ".join(
        bytes(value).decode("utf-8", "replace") if isinstance(value, memoryview) else str(value)
        for value in row
    )

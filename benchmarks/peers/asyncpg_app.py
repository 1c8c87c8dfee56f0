"""FastAPI with hand-written SQL on asyncpg: ``uvicorn benchmarks.peers.asyncpg_app:app``.

asyncpg prepares each statement at its first use on a connection.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import orjson

from benchmarks.peers.application import create_app
from benchmarks.peers.sql import STATEMENTS, Statement, updating

DSN = os.environ["DATABASE_URL"].replace("+psycopg2", "")
POOL_SIZE = int(os.environ["PEER_POOL_SIZE"])


class Transaction:
    """Runs the statements of :mod:`benchmarks.peers.sql` on one connection."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def one(self, name: str, values: dict[str, Any]) -> Any:
        return await self._row(STATEMENTS[name], values)

    async def all(self, name: str, values: dict[str, Any]) -> list[Any]:
        statement = STATEMENTS[name]
        arguments = [values[key] for key in statement.names]
        rows: list[Any] = await self._connection.fetch(statement.text, *arguments)
        return rows

    async def update(self, table: str, values: dict[str, Any], after: dict[str, Any]) -> Any:
        return await self._row(updating(table, tuple(after)), {**values, **after})

    async def _row(self, statement: Statement, values: dict[str, Any]) -> Any:
        arguments = [values[name] for name in statement.names]
        return await self._connection.fetchrow(statement.text, *arguments)


class Database:
    """asyncpg's pool."""

    async def open(self) -> None:
        self._pool = await asyncpg.create_pool(
            DSN,
            min_size=POOL_SIZE,
            max_size=POOL_SIZE,
            init=_use_orjson,
            reset=_reset_nothing,
            server_settings={"timezone": "UTC", "statement_timeout": "15s"},
        )

    async def close(self) -> None:
        await self._pool.close()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with self._pool.acquire() as connection, connection.transaction():
            yield Transaction(connection)


async def _use_orjson(connection: Any) -> None:
    await connection.set_type_codec(
        "json",
        schema="pg_catalog",
        encoder=lambda value: orjson.dumps(value).decode(),
        decoder=orjson.loads,
    )


async def _reset_nothing(connection: Any) -> None:
    """Every setting is the transaction's; asyncpg's own reset would be one more round trip."""


app = create_app("asyncpg", Database())

"""SQL for tests: looks at, and changes, what the service stored, with every tenant visible."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from flask import Flask
from sqlalchemy import select, text

from app.core.db import tenancy, transactions
from app.core.db.statements import Statement

_app: Flask


def bind(app: Flask) -> None:
    """Use this application's database from now on."""
    global _app
    _app = app


@contextmanager
def platform_transaction() -> Iterator[None]:
    """A transaction that sees every tenant, beside any that the test has opened."""
    opened = transactions._current.set(None)
    try:
        with _app.app_context(), transactions.transaction():
            tenancy.enter(tenancy.PLATFORM)
            yield
    finally:
        transactions._current.reset(opened)


def query(sql: str, **values: Any) -> list[Any]:
    """The rows of a statement with ``:name`` parameters, as named tuples."""
    with platform_transaction():
        return Statement("tests.query", text(sql), prepare=False).all(**values)


def execute(sql: str, **values: Any) -> int:
    """Run a statement with ``:name`` parameters; how many rows it changed."""
    with platform_transaction():
        return Statement("tests.execute", text(sql), prepare=False).execute(**values)


def wait_for_lock(waiting: Future) -> None:
    """Return once a transaction waits for a lock; ``waiting``, which began it, may not have ended."""
    while not query("SELECT FROM pg_locks WHERE NOT granted"):
        assert not waiting.done()


def rows(model: Any, **equal: Any) -> list[Any]:
    """The rows of a model whose columns have these values, in the order of their keys."""
    clause = select(model).filter_by(**equal).order_by(*model.__table__.primary_key)
    with platform_transaction():
        return Statement("tests.rows", clause, prepare=False).all()


def row(model: Any, **equal: Any) -> Any:
    """The only such row."""
    (found,) = rows(model, **equal)
    return found

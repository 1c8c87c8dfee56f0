"""The messages that the service sends to PostgreSQL."""

from collections.abc import Iterator
from contextlib import contextmanager

from app.core.db import transactions


@contextmanager
def sent_messages() -> Iterator[list[str]]:
    """The name of each message that this process sends in the block, each one a round trip.

    BEGIN has no name of its own, because it travels with the first statement; COMMIT has one.
    """
    names: list[str] = []

    @contextmanager
    def note(name: str, _template: str) -> Iterator[None]:
        names.append(name)
        yield

    transactions.observers.append(note)
    try:
        yield names
    finally:
        transactions.observers.remove(note)

"""Long work in slices: each is one transaction, which also stores how far the work is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from app.core.db import retries
from app.core.db.transactions import DATABASE_FAULTS, RowChanged

T = TypeVar("T")

TURN = 5.0  # seconds of work, before the worker takes the next job of all queues


def run(
    do_next: Callable[[], T | None],
    is_over: Callable[[T], bool],
    fail: Callable[[str], object] = lambda error: None,
) -> Iterator[T]:
    """Do slices until ``do_next`` returns None or a state that ``is_over``; yields the states.

    After an error of the database the work can be resumed; any other exception is given to
    ``fail``, as a sentence, and raised.
    """
    while True:
        try:
            state = retries.run(do_next)
        except (*DATABASE_FAULTS, RowChanged):
            raise
        except Exception as fault:
            error = f"It ended with an unexpected error ({type(fault).__name__})."
            retries.run(partial(fail, error))
            raise
        if state is not None:
            yield state
        if state is None or is_over(state):
            return


def take_turn(slices: Iterator[T]) -> T | None:
    """Do slices for :data:`TURN` at most; returns what the last one yielded."""
    ends_at, last = time.monotonic() + TURN, None
    for state in slices:
        last = state
        if time.monotonic() > ends_at:
            break
    return last

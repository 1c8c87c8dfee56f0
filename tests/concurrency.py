"""Doing things at the same moment."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any


def at_once(actions: Sequence[Callable[[], Any]]) -> list[Any]:
    """The results of the actions, each run in a thread of its own, all let go together."""
    barrier = Barrier(len(actions))

    def run(action: Callable[[], Any]) -> Any:
        barrier.wait(timeout=30)
        return action()

    with ThreadPoolExecutor(len(actions)) as threads:
        return list(threads.map(run, actions))

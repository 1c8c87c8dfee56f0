"""Processes that run together: all start, all stop, and none is left behind."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from app.dev.faults import DevError
from app.dev.launch import end_with_parent

GRACE_SECONDS = 30


class Processes:
    """The children of one command.

    They write to standard error, for standard output is the command's own. Ctrl-C reaches the
    command only, which stops them in order; on Linux they end with the command even if that is
    killed with SIGKILL.
    """

    def __init__(self, environ: Mapping[str, str], *, folder: Path) -> None:
        self._environ = dict(environ)
        self._folder = folder
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start one more process, to be called ``name``."""
        self._children[name] = subprocess.Popen(  # noqa: S603 - our own commands
            command,
            env=self._environ,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            start_new_session=True,
            preexec_fn=end_with_parent(signal.SIGINT),  # gunicorn's quick way to let go of its port
        )

    def watch(self, *, until: Callable[[], bool], seconds: float = float("inf")) -> None:
        """Return once ``until`` holds.

        Raises :class:`DevError` if one of the processes ends before, or after ``seconds``.
        """
        deadline = time.monotonic() + seconds
        while not until():
            for name, child in self._children.items():
                if child.poll() is not None:
                    raise DevError(f"The {name} ended unexpectedly, with code {child.returncode}.")
            if time.monotonic() > deadline:
                raise DevError(f"The service was not ready within {seconds:.0f} s.")
            time.sleep(0.2)

    def stop(self) -> None:
        """Ask all to finish what they are at; end by force what has not after a while."""
        running = [child for child in reversed(self._children.values()) if child.poll() is None]
        for child in running:
            child.terminate()
        deadline = time.monotonic() + GRACE_SECONDS
        for child in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(max(0.0, deadline - time.monotonic()))
            if child.poll() is None:
                _end_by_force(child)
        self._children.clear()


def _end_by_force(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(psutil.Error):
        for descendant in psutil.Process(child.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                descendant.kill()
    child.kill()
    child.wait()

"""What the private PostgreSQL and the private Redis have in common: start, be ready, stop."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, ClassVar

import psutil

from app.dev.faults import DevError
from app.dev.folders import Account
from app.dev.instance import Instance
from app.dev.launch import launch

LARGEST_LOG = 5_000_000  # bytes; a longer log starts anew with the engine
FAULT = re.compile(r"FATAL|PANIC|ERROR|rror:|FAILED|ailed")


class Engine:
    """One server program of an instance.

    ``durable=False`` trades the safety of the data for speed; for tests.
    """

    title: ClassVar[str]
    name: ClassVar[str]
    programs: ClassVar[frozenset[str]]
    end_signals: ClassVar[Sequence[tuple[signal.Signals, float]]]  # each with the seconds it gets

    def __init__(self, instance: Instance, *, account: Account | None, durable: bool) -> None:
        self.instance = instance
        self.account = account
        self.durable = durable
        self.process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def data(self) -> Path:
        """The folder of the data, in which the program runs."""
        raise NotImplementedError

    @property
    def mark(self) -> str:
        """Words in the command line of this instance's program, and of no other's."""
        raise NotImplementedError

    def command(self) -> list[str | Path]:
        """The command line."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Make the data folder, and remove what a killed program has left."""
        raise NotImplementedError

    def answers(self) -> bool:
        """True once the program serves requests."""
        raise NotImplementedError

    def start(self) -> None:
        """Start the program; :meth:`wait_until_ready` says when it can be used."""
        end_leftovers(type(self), self.mark)
        self.prepare()
        with self.open_log() as log:
            self.process = launch(
                self.command(),
                account=self.account,
                folder=self.data,
                output=log,
                end_signal=self.end_signals[0][0],
            )

    def wait_until_ready(self, *, seconds: float = 60) -> None:
        """Return once the program serves requests.

        Raises :class:`DevError` with the program's own last words if it ends instead.
        """
        deadline = time.monotonic() + seconds
        while not self.answers():
            if self.has_ended() or time.monotonic() > deadline:
                raise DevError(f"{self.title} did not start: {self.last_words()}")
            time.sleep(0.02)

    def has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def stop(self) -> None:
        """End the program, the gentle way first."""
        if self.process is None:
            return
        for end_signal, seconds in self.end_signals:
            self.process.send_signal(end_signal)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)
                return

    def open_log(self) -> IO[bytes]:
        """The log, for the program and for those that prepare its data."""
        path = self.instance.log(self.name)
        too_long = path.exists() and path.stat().st_size > LARGEST_LOG
        log = path.open("wb" if too_long else "ab")
        self._log_start = log.tell()
        return log

    def last_words(self) -> str:
        """The last line since the start that names a fault, with the log's path."""
        path = self.instance.log(self.name)
        lines = path.read_bytes()[self._log_start :].decode(errors="replace").splitlines()
        faults = [line for line in lines if FAULT.search(line)] or lines or ["it said nothing"]
        return f"{faults[-1].strip()} (see {path})"


def end_leftovers(engine: type[Engine], mark: str) -> None:
    """End programs of an instance whose keeper was killed.

    A program is known by its name and by ``mark``, which it shows in its command line: process ids
    are used again, and what stands in a lock file may be somebody else's by now.
    """
    for end_signal, seconds in engine.end_signals:
        for process in _leftovers(engine, mark):
            _send(process, end_signal)
        deadline = time.monotonic() + seconds
        while any(_leftovers(engine, mark)):
            if time.monotonic() > deadline:
                break
            time.sleep(0.1)
        else:
            return
    raise DevError(f"{engine.title} of an earlier start of {mark} does not end.")


def _leftovers(engine: type[Engine], mark: str) -> Iterator[psutil.Process]:
    """The programs left; a dead one that nobody has waited for has no command line any more."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.name() in engine.programs and mark in " ".join(process.cmdline()):
                yield process


def _send(process: psutil.Process, end_signal: signal.Signals) -> None:
    try:
        process.send_signal(end_signal)
    except psutil.NoSuchProcess:
        return
    except psutil.AccessDenied:
        raise DevError(
            f"Process {process.pid}, left by an earlier start, belongs to {process.username()}."
        ) from None

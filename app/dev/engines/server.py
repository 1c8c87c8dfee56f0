"""Shared by PostgreSQL and Redis: start unless it runs, wait until it answers, stop."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from app.dev.engines.account import Account
from app.dev.engines.instance import DevError, Instance

START_SECONDS = 60
FAULT = re.compile(r"FATAL|PANIC|ERROR|rror:|FAILED|ailed")


class Server:
    """One server of an instance; whichever process started it, any other may use and stop it.

    ``durable=False`` trades the safety of the data for speed; for tests.
    """

    title: str
    name: str  # of its data folder and its log
    pid_name: str  # of the file in the data folder in which it writes its process id
    stop_signals: Sequence[tuple[signal.Signals, float]]  # each with the seconds it gets

    def __init__(self, instance: Instance, *, account: Account, durable: bool) -> None:
        self.instance = instance
        self.account = account
        self.durable = durable
        self.data = instance.folder / self.name
        self.pid_file = self.data / self.pid_name
        self.log = instance.log(self.name)
        self._child: subprocess.Popen[bytes] | None = None

    def command(self) -> Sequence[str | Path]:
        raise NotImplementedError

    def prepare(self) -> None:
        """Create the data, and remove what a killed server has left."""
        raise NotImplementedError

    def answers(self) -> bool:
        raise NotImplementedError

    def start(self) -> None:
        """The server answers afterwards; a running server is used.

        Raises :class:`DevError` with the last fault in its log if it does not start.
        """
        if self.answers():
            return
        self.stop()  # a server that starts, stops or hangs: its starter may have been killed
        self.account.own(self.instance.sockets)
        self.prepare()
        child = self.launch(self.command(), folder=self.data)
        wait_until(lambda: self.answers() or child.poll() is not None, seconds=START_SECONDS)
        if child.poll() is not None or not self.answers():
            raise DevError(f"{self.title} did not start: {self.last_fault()}")

    def stop(self) -> None:
        """The server has ended afterwards; DevError if it cannot be stopped."""
        for number, seconds in self.stop_signals:
            if process := self.process():
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(number)
                wait_until(lambda: self.process() is None, seconds=seconds)
        if self.process():
            raise DevError(f"{self.title} does not stop; see {self.log}.")
        if self._child is not None:
            self._child.terminate()  # it has ended, unless it has no pid file yet
            self._child.wait()

    def process(self) -> psutil.Process | None:
        """The running server; None if there is none, or if its process id is another program's."""
        with suppress(psutil.Error, ValueError):
            process = psutil.Process(self.pid())
            if str(self.instance.sockets) in " ".join(process.cmdline()):
                return process
        return None

    def pid(self) -> int:
        """The process id in the pid file; -1 if there is none."""
        with suppress(OSError, ValueError, IndexError):
            return int(self.pid_file.read_text().split()[0])
        return -1

    def launch(self, command: Sequence[str | Path], *, folder: Path) -> subprocess.Popen[bytes]:
        """Start a program as the server's account; the log holds its output only."""
        self.log.parent.mkdir(exist_ok=True)
        with self.log.open("wb") as log:
            try:
                self._child = self.account.launch(
                    [str(word) for word in command],
                    cwd=folder,
                    env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # Ctrl-C does not reach it
                )
            except (OSError, subprocess.SubprocessError) as fault:
                raise DevError(f"{command[0]} cannot be started: {fault}.") from None
        return self._child

    def last_fault(self) -> str:
        """The last line in the log that names a fault, with the log's path."""
        lines = self.log.read_text(errors="replace").splitlines()
        faults = [line for line in lines if FAULT.search(line)] or lines or ["no message"]
        return f"{faults[-1].strip()} (see {self.log})"


def wait_until(condition: Callable[[], bool], *, seconds: float, every: float = 0.02) -> None:
    """Return once ``condition`` holds, at the latest after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(every)

"""`flask dev` in a folder of its own, for tests."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

import psutil
import pytest

from app.dev.processes import PROJECT, address, is_ready
from tests.dev.engines.test_sharing import eventually, processes_of

FLASK = [sys.executable, "-m", "flask", "--app", "wsgi"]
CONFIGURED = ("DATABASE_URL", "MIGRATION_DATABASE_URL", "REDIS_URL", "INSTANCE_DIR")
READY_SECONDS = 300


def environment(folder: Path) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if name not in CONFIGURED}
    return {**plain, "INSTANCE_DIR": str(folder)}


def flask(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run another command of the same folder."""
    return subprocess.run(
        [*FLASK, *words],
        cwd=PROJECT,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=READY_SECONDS,
    )


class Dev:
    """A running `flask dev`, ready; ``printed`` is what it has printed on standard output."""

    def __init__(self, folder: Path, port: int, *options: str) -> None:
        self.folder = folder
        self.url = address(port)
        self.log = folder.parent / "dev.log"
        self._log = self.log.open("wb")
        self.process = subprocess.Popen(
            [*FLASK, "dev", "--port", str(port), *options],
            cwd=PROJECT,
            env=environment(folder),
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.printed = ""
        if "--quiet" in options:
            ready = eventually(
                lambda: is_ready(port) or self.process.poll() is not None, READY_SECONDS
            )
        else:
            ready = any(self._print(line) for line in self.process.stdout)
        if not ready or self.process.poll() is not None:
            pytest.fail(self.log.read_text())

    def _print(self, line: str) -> bool:
        """Whether the line is the last one of the start."""
        self.printed += line
        return line.startswith("Stop")

    @cached_property
    def variables(self) -> dict[str, str]:
        """What `flask seed --env` sets."""
        printed = flask(self.folder, "seed", "--env").stdout
        return dict(shlex.split(line)[1].split("=", 1) for line in printed.splitlines())

    def service(self) -> list[psutil.Process]:
        """The processes it has started, but for PostgreSQL and Redis."""
        started = psutil.Process(self.process.pid).children(recursive=True)
        return [process for process in started if process not in processes_of(self.folder)]

    def end(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        code = self.process.wait(60)
        self.process.stdout.close()
        self._log.close()
        return code


def is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


@contextmanager
def running_dev(folder: Path, port: int, *options: str) -> Iterator[Dev]:
    dev = Dev(folder, port, *options)
    try:
        yield dev
    finally:
        if dev.process.poll() is None:
            dev.end(signal.SIGTERM)

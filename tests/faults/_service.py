"""The web server at one port, which can be killed and started again."""

import random
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

import psutil

from tests.running.serving import HOST, answers, running, wait_until
from tests.streams.support import kill


class Service:
    """gunicorn with two web processes; ready in the block."""

    def __init__(self, environment: Mapping[str, str], folder: Path, port: int) -> None:
        self._environment, self._folder, self._port = environment, folder, port
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "gunicorn", "wsgi:app", f"--bind={HOST}:{self._port}"]
        environ = {**self._environment, "WEB_PROCESSES": "2"}
        log = self._folder / "web.log"
        self._process = self._stack.enter_context(running(command, environ=environ, log=log))
        wait_until(lambda: answers(self._port, "/readyz") == 200)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def restart(self) -> None:
        """Kill all and start again."""
        kill(self._process)
        self._stack.close()
        self.__enter__()

    def kill_one(self) -> None:
        """Kill a web process, for which gunicorn starts another."""
        with suppress(psutil.NoSuchProcess, IndexError):
            random.choice(psutil.Process(self._process.pid).children()).kill()

"""A real stream process, the sequencer that wakes it, and clients that read its streams."""

import http.client
import json
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from app.events.sequencer import run_sequencer
from tests.ports import free_port
from tests.running.serving import HOST, answers, running, wait_until


@contextmanager
def stream_process(environment: Mapping[str, str], folder: Path, *, port: int | None = None):
    """The stream process, ready; its port and the process."""
    port = port or free_port()
    command = [sys.executable, "-m", "gunicorn", "--config", "app/streams/gunicorn.conf.py"]
    command += [f"--bind={HOST}:{port}", "app.streams:create_app()"]
    log = folder / f"stream-{port}.log"
    with running(command, environ=environment, log=log) as process:
        wait_until(lambda: answers(port, "/readyz") == 200 or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield port, process


def kill(process: subprocess.Popen) -> None:
    """Kill gunicorn and its worker, which would else end by itself within a second."""
    for one in [*psutil.Process(process.pid).children(), process]:
        one.kill()
    process.wait()


@contextmanager
def sequencing(app) -> Iterator[None]:
    """The sequencer runs in a thread."""
    ended = threading.Event()
    thread = threading.Thread(target=run_sequencer, args=(app,), kwargs={"stop": ended.is_set})
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class Client:
    """Reads one stream as ``EventSource`` does; it does not come back by itself."""

    def __init__(self, port: int, path: str, token: str | None = None, **headers: str) -> None:
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self._connection = http.client.HTTPConnection(HOST, port, timeout=60)
        self._connection.connect()
        self._socket = self._connection.sock
        self._connection.request("GET", path, headers=headers)
        self.answer = self._connection.getresponse()
        self.status = self.answer.status
        self.last_id, self.retries, self.comments = "", [], 0
        self.has_ended = threading.Event()
        self.events: queue.Queue = queue.Queue()
        is_stream = self.answer.headers["Content-Type"].startswith("text/event-stream")
        if is_stream:
            threading.Thread(target=self._read, daemon=True).start()
        else:
            self.body = json.loads(self.answer.read())

    def _read(self) -> None:
        fields: dict[str, str] = {}
        with suppress(OSError, http.client.HTTPException, AttributeError, ValueError):
            for line in self.answer:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "retry":
                    self.retries.append(int(value))
                elif name.startswith(":"):
                    self.comments += 1
                elif name:
                    fields[name] = value
                elif "data" in fields:
                    self.last_id = fields.get("id", "")
                    self.events.put((self.last_id, json.loads(fields.pop("data")), time.time()))
                    fields = {}
        self.has_ended.set()

    def next(self, timeout: float = 10):
        """The id and the data of the next event."""
        return self.events.get(timeout=timeout)[:2]

    def is_quiet(self, seconds: float = 0.7) -> bool:
        """Whether no event comes for so long."""
        with suppress(queue.Empty):
            self.events.get(timeout=seconds)
            return False
        return True

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self.answer.close()


def address(event_stream: Mapping) -> str:
    """The path and the query of an entry of ``eventStreams``."""
    if "url" in event_stream:
        parts = urlsplit(event_stream["url"])
        return f"{parts.path}?{parts.query}"
    return event_stream["endpoint"]["requestUri"]

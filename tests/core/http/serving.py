"""A small WSGI application, and gunicorn processes that serve it."""

import http.client
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.running.serving import HOST, answers, running, wait_until

LARGE = 3_000_000
HEADERS = b" HTTP/1.1\r\nHost: a\r\n"
SMALL = b"GET /small" + HEADERS + b"\r\n"
UPLOAD = b"POST /upload" + HEADERS + b"Content-Length: 1200000\r\n\r\n" + b"x" * 1_200_000


def program(environ, start_response):
    """Answers with the path and the body; ``/large`` with 3 MB, ``/sleep/2`` after 2 s."""
    path = environ["PATH_INFO"]
    body = path.encode() + environ["wsgi.input"].read()
    if path.startswith("/sleep/"):
        time.sleep(float(path.removeprefix("/sleep/")))
    if path == "/large":
        body = b"x" * LARGE
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


class Server:
    """gunicorn with its workers."""

    def __init__(self, port: int, process: psutil.Process, log: Path) -> None:
        self.address = HOST, port
        self.process = process
        self.log = log

    @property
    def workers(self) -> list[psutil.Process]:
        return self.process.children()

    @property
    def connections(self) -> int:
        every = [one for worker in self.workers for one in worker.net_connections("tcp")]
        return sum(one.status == "ESTABLISHED" for one in every)

    def connect(self, sent: bytes = b"", *, is_slow: bool = False) -> socket.socket:
        """A connection that has sent something; the kernel keeps little for a slow one."""
        client = socket.socket()
        if is_slow:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(20)
        client.connect(self.address)
        client.sendall(sent)
        return client


@contextmanager
def gunicorn(folder: Path, *, idle: int = 30, **settings: int) -> Iterator[Server]:
    """gunicorn, ready. Its socket stays open, so that new connections wait after it ended."""
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
        config = folder / f"{port}.py"
        config.write_text(
            f"from app.core.http import server\nserver.IDLE = {idle}\n"
            f"worker_class = server.Worker\nbind = 'fd://{listener.fileno()}'\n"
            "control_socket_disable = True\n"
            + "".join(f"{name} = {value}\n" for name, value in {"threads": 2, **settings}.items())
        )
        target = f"{program.__module__}:{program.__name__}"
        command = [sys.executable, "-m", "gunicorn", f"--config={config}", target]
        log = folder / f"{port}.log"
        with running(command, log=log, inherited=[listener.fileno()]) as process:
            wait_until(lambda: answers(port, "/") == 200 or process.poll() is not None)
            assert process.poll() is None, log.read_text()
            server = Server(port, psutil.Process(process.pid), log)
            wait_until(lambda: len(server.workers) == settings.get("workers", 1))
            yield server


def answer(client: socket.socket) -> tuple[http.client.HTTPResponse, bytes]:
    """The next answer, which must be complete."""
    found = http.client.HTTPResponse(client)
    found.begin()
    return found, found.read()


def received(client: socket.socket) -> bytes:
    """All bytes until the server closes."""
    with client.makefile("rb") as stream:
        return stream.read()


def reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()

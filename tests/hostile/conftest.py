"""What the hostile tests share."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest
from flask import Flask

from tests.hostile.document import Document
from tests.hostile.installation import Installation, installation
from tests.hostile.tally import Tally
from tests.hostile.world import World, create_world


@pytest.fixture(scope="session")
def document(app: Flask) -> Document:
    return Document.of(app)


@pytest.fixture(scope="session")
def service(app: Flask) -> Iterator[Installation]:
    """The service behind gunicorn, on engines of its own."""
    with installation() as found:
        yield found


@pytest.fixture
def world(app: Flask, document: Document) -> World:
    """A tenant with one of everything, for one test."""
    return create_world(app, document)


@pytest.fixture
def tally() -> Tally:
    return Tally()


@pytest.fixture
def frozen_redis(tmp_path) -> Iterator[tuple[str, list[socket.socket]]]:
    """The URL of a server that takes every connection and never says a word, and the connections."""
    accepted: list[socket.socket] = []
    path = tmp_path / "redis.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(64)

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    accepted.append(server.accept()[0])

        threading.Thread(target=accept, daemon=True).start()
        yield f"unix://{path}?db=0", accepted
        server.shutdown(socket.SHUT_RDWR)
    for connection in accepted:
        connection.close()

"""Clients that go away at any moment of a request, with and without nginx in front."""

import random
import shutil
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psutil

from tests import factories
from tests.hostile.installation import Installation, installation
from tests.hostile.load import Outcomes, load, seeded
from tests.running.proxies import nginx
from tests.soak.verdict import Verdict

CLIENTS = 5_000  # of each server
TOGETHER = 32
HEADERS = b" HTTP/1.1\r\nHost: a\r\n"
UPLOAD = b"Content-Type: application/json\r\nContent-Length: 1200000\r\n\r\n" + b"x" * 1_200_000
REQUESTS = [
    b"GET /healthz" + HEADERS + b"\r\n",
    (b"GET /openapi.json" + HEADERS + b"\r\n") * 3,
    b"GET /healthz" + HEADERS + b"Connection: close\r\n\r\n",
    b"POST /v1/users" + HEADERS + UPLOAD,
    b"POST /v1/imports" + HEADERS + UPLOAD,
    b"POST /webhooks/idp" + HEADERS + b"Expect: 100-continue\r\n" + UPLOAD,
    b"POST /v1/users" + HEADERS + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /v1/users" + HEADERS + b"Content-Length: 99999999999\r\n\r\n",
    b"no request\r\n\r\n",
]


def prove(deadline: float) -> Verdict:
    """No web process ends, and other clients get each answer, while clients go away."""
    if shutil.which("nginx", path="/usr/sbin:/usr/bin") is None:
        return Verdict("nginx is not installed", ["on Debian: apt install nginx"])
    with installation() as service:
        factories.bind(service.app)
        before = _workers(service)
        folder = service.instance.folder
        with load(service.port, seeded()) as outcomes, nginx(service.port, folder) as front:
            for port in (service.port, front):
                _go_away(port, deadline)
        ended = len(set(before) - set(_workers(service)))
    return Verdict(
        f"{2 * CLIENTS:,} clients went away, {ended} processes ended; of others: {outcomes}",
        _faults(ended, outcomes),
    )


def _workers(service: Installation) -> list[psutil.Process]:
    return psutil.Process(service.gunicorn.pid).children()


def _go_away(port: int, deadline: float) -> None:
    chance = random.Random(port)

    def one(number: int) -> None:
        sent = REQUESTS[number % len(REQUESTS)]
        part = sent[: chance.choice((len(sent), chance.randrange(len(sent))))]
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 20) as client:
            client.sendall(part)
            client.settimeout(chance.choice((0.001, 0.02)))
            if chance.random() < 0.3:
                client.recv(100)
            if chance.random() < 0.5:  # a reset
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with ThreadPoolExecutor(TOGETHER) as clients:
        list(clients.map(one, range(CLIENTS)))
    assert time.monotonic() < deadline, "not done in time"


def _faults(ended: int, outcomes: Outcomes) -> list[str]:
    faults = [f"{ended} web processes ended"] if ended else []
    faults += [str(outcome) for outcome in outcomes.strange]
    return faults

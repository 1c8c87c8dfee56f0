"""``gunicorn wsgi:app`` alone against slow clients, malformed requests and large bodies."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from contextlib import suppress

import psutil
import pytest

from tests.factories import create_member, create_tenant, create_user
from tests.running.serving import HOST, answers, wait_until, web_server

EACH = 60
TIMEOUT = 5
REQUESTS = 300
HEAD = b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-Slow: "
BODY = b"POST /v1/users HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n{"


class Dribbling(threading.Thread):
    """Connections that send one byte ten times a second of a request that never ends."""

    def __init__(self, connections: list[socket.socket]) -> None:
        super().__init__(daemon=True)
        self.connections = connections
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.1):
            for one in self.connections:
                with suppress(OSError):
                    one.send(b" ")


@pytest.fixture(scope="module")
def served(app, environment, tmp_path_factory):
    settings = {**environment, "RATELIMIT_ENABLED": "0"}
    with web_server(settings, tmp_path_factory.mktemp("web"), f"--timeout={TIMEOUT}") as (
        port,
        process,
    ):
        yield port, psutil.Process(process.pid)


class TestSlowClients:
    def test_hold_nobody_up_and_are_ended(self, served, record_property):
        port, gunicorn = served
        tenant = create_tenant()
        _, _, token = create_member(tenant)
        for _ in range(99):
            create_user(tenant, meta_data={"text": "x" * 32_000})
        large = (
            f"GET /v1/users?limit=100 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\r\n"
        )
        before = megabytes(gunicorn)
        slow = [connect(port, sent) for sent in (HEAD, BODY) for _ in range(EACH)]
        dribbling = Dribbling(slow)
        dribbling.start()
        unread = []
        for _ in range(EACH):
            unread.append(connect(port, large.encode()))
            time.sleep(0.05)
        names = {one.getsockname()[1] for one in (*slow, *unread)}

        seconds = sorted(timed(port, token) for _ in range(REQUESTS))
        after = megabytes(gunicorn)
        wait_until(lambda: not open_ports(gunicorn) & names, 3 * TIMEOUT)
        dribbling.ended.set()
        dribbling.join()

        p99 = seconds[int(REQUESTS * 0.99) - 1]
        record_property("p99_ms", round(p99 * 1000))
        record_property("megabytes", [round(one) for one in (before, after)])
        assert p99 < 0.2
        assert after - before < 200
        assert {reply(one)[9:12] for one in slow} == {b"408"}
        for one in (*slow, *unread):
            one.close()


class TestConnections:
    @pytest.mark.parametrize("count", [16, 64])
    def test_spread_over_the_processes(self, served, count):
        port, gunicorn = served
        kept = [http.client.HTTPConnection(HOST, port) for _ in range(count)]

        def ask(connection: http.client.HTTPConnection) -> None:
            connection.request("GET", "/healthz")
            connection.getresponse().read()

        threads = [threading.Thread(target=ask, args=[one]) for one in kept]
        for thread in threads:
            thread.start()
            time.sleep(0.005)
        for thread in threads:
            thread.join()

        counts = [len(open_ports(child)) for child in gunicorn.children()]
        assert len(counts) == 2
        assert sum(counts) == count
        assert min(counts) >= count / 4
        for one in kept:
            one.close()


class TestRefusals:
    """Of the server itself, of requests without a credential."""

    @pytest.mark.parametrize(
        "path", ["/v1/users", "/v1/tenants", "/webhooks/idp", "/healthz", "/no"]
    )
    def test_a_malformed_body_is_400_everywhere(self, served, path):
        port, _ = served

        status, body, headers = post(port, path, b"5\r\nhello, world\r\n0\r\n\r\n")

        assert (status, json.loads(body)) == (400, {"detail": "Bad Request"})
        assert headers["X-Request-Id"]

    @pytest.mark.parametrize(
        ("path", "limit", "accepted"),
        [
            ("/v1/users", 2**20, 401),
            ("/webhooks/idp", 5 * 2**20, 401),
            ("/v1/app-communications/webhooks/emailprovider", 5 * 2**20, 401),
        ],
    )
    def test_a_body_above_the_limit_of_its_path_is_413(self, served, path, limit, accepted):
        port, _ = served
        found = []
        for size in (limit, limit + 1):
            chunk = b"%x\r\n%b\r\n0\r\n\r\n" % (size, b"x" * size)
            found.append(post(port, path, chunk)[0])

        assert found == [accepted, 413]

    def test_a_long_query_is_judged_by_the_application(self, served):
        port, _ = served

        assert answers(port, "/v1/users?email=" + "a" * 4096) == 401
        assert answers(port, "/v1/users?email=" + "a" * 9000) == 414
        assert answers(port, "//v1/users") == 404


def post(port: int, path: str, chunks: bytes) -> tuple[int, bytes, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection(HOST, port, timeout=20)
    connection.putrequest("POST", path)
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    connection.send(chunks)
    answer = connection.getresponse()
    found = answer.status, answer.read(), answer.headers
    connection.close()
    return found


def connect(port: int, sent: bytes) -> socket.socket:
    """A connection that has sent something, and for which the kernel keeps little."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(20)
    client.connect((HOST, port))
    client.sendall(sent)
    return client


def timed(port: int, token: str) -> float:
    """Seconds of a request on a new connection."""
    started = time.perf_counter()
    connection = http.client.HTTPConnection(HOST, port, timeout=20)
    connection.request(
        "GET", "/v1/memberships/tenant?limit=1", headers={"Authorization": f"Bearer {token}"}
    )
    answer = connection.getresponse()
    answer.read()
    connection.close()
    assert answer.status == 200
    return time.perf_counter() - started


def reply(client: socket.socket) -> bytes:
    with suppress(OSError):
        return client.recv(100)
    return b""


def megabytes(gunicorn: psutil.Process) -> float:
    """The resident memory of all processes of the server."""
    return sum(child.memory_info().rss for child in gunicorn.children()) / 1e6


def open_ports(process: psutil.Process) -> set[int]:
    """The clients' ports of the connections that the server holds."""
    found = set()
    for one in (process, *process.children()):
        found |= {each.raddr.port for each in one.net_connections("tcp") if each.status != "LISTEN"}
    return found

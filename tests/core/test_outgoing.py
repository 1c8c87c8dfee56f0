"""Requests to other services: which addresses are refused, and how long an answer may take."""

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from app.core.outgoing import OPERATOR, AddressRefused, FetchFailed, Outgoing

GUARDED = Outgoing(only_public=True)
REFUSED = (
    # no https, no host, or a user
    "http://example.com/", "ftp://example.com/", "file:///etc/passwd", "https:///path",
    "https://[::1/", "https://user:password@example.com/", "https://user@example.com/",
    "https://@example.com/", "https://:@example.com/",
    # what is no URL, although clients have read it as one
    "https://example.com:-1/", "https://example.com\\@127.0.0.1/",
    "https://example.com/\r\nX-A: b", "https://bücher.example/",
    # this machine, in each form
    "https://127.0.0.1/", "https://127.1/", "https://2130706433/", "https://0x7f000001/",
    "https://0177.0.0.1/", "https://017700000001/", "https://localhost/", "https://LOCALHOST/",
    "https://0.0.0.0/", "https://0/", "https://[::1]/", "https://[::]/",
    # private networks, link-local addresses, carrier-grade NAT, multicast
    "https://10.0.0.1/", "https://172.16.0.1/", "https://192.168.1.1/", "https://100.64.0.1/",
    "https://224.0.0.1/", "https://[fe80::1]/", "https://[fe80::1%eth0]/",
    "https://[fe80::1%25eth0]/", "https://[fec0::1]/", "https://[fd00::1]/",
    # a cloud's metadata
    "https://169.254.169.254/latest/meta-data/", "https://[fd00:ec2::254]/",
    # an IPv4 address in IPv6: mapped, in the old form, translated, NAT64, 6to4
    "https://[::ffff:127.0.0.1]/", "https://[::127.0.0.1]/", "https://[::ffff:0:127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/", "https://[64:ff9b:1::7f00:1]/", "https://[2002:7f00:1::]/",
)  # fmt: skip
ADDRESSES_OF_NAMES = (
    "127.0.0.1", "10.1.2.3", "169.254.169.254", "100.64.0.1", "::1", "::7f00:1", "fec0::1", "fe80::1",
    "64:ff9b::7f00:1", "::ffff:10.0.0.1", "::ffff:0:10.0.0.1",
)  # fmt: skip


class Resolver:
    """A name server of our own: it answers each question with the next of its addresses.

    As with each name server, an address is its own answer.
    """

    def __init__(self) -> None:
        self.addresses: list[str] = []
        self.asked = 0

    def getaddrinfo(self, host: str, port: int, *_: object, **__: object) -> list[object]:
        address = host
        if not re.fullmatch(r"[0-9.]+|[0-9a-f:]*:[0-9a-f:.]*", host):
            address = self.addresses[min(self.asked, len(self.addresses) - 1)]
            self.asked += 1
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [(family, socket.SOCK_STREAM, 6, "", (address, port))]


@pytest.fixture
def resolver(monkeypatch) -> Resolver:
    found = Resolver()
    monkeypatch.setattr(socket, "getaddrinfo", found.getaddrinfo)
    return found


@contextmanager
def raw_server(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that reads a request and calls ``answer`` with the connection; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            try:
                while True:
                    connection, _ = listening.accept()
                    with connection:
                        connection.recv(65536)
                        answer(connection)
            except OSError:
                return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def send(client: Outgoing, url: str, *, timeout: float = 2.0, max_bytes: int = 100):
    return client.send("POST", url, body=b"{}", timeout=timeout, max_bytes=max_bytes)


class TestGuard:
    @pytest.mark.parametrize("url", REFUSED)
    def test_refuses_a_hostile_url(self, url):
        with pytest.raises(AddressRefused):
            send(GUARDED, url)

    @pytest.mark.parametrize("address", ADDRESSES_OF_NAMES)
    def test_refuses_a_name_that_has_a_private_address(self, resolver, address):
        resolver.addresses = [address]

        with pytest.raises(AddressRefused):
            send(GUARDED, "https://hooks.example.com/")

    def test_asks_for_the_address_once_and_connects_to_the_one_it_checked(
        self, resolver, monkeypatch
    ):
        """The second answer of a name server that rebinds the name is never used."""
        resolver.addresses = ["93.184.216.34", "127.0.0.1"]
        connected = []

        def connect(self: socket.socket, address: tuple[object, ...]) -> None:
            connected.append(address[0])
            raise ConnectionRefusedError

        monkeypatch.setattr(socket.socket, "connect", connect)

        with pytest.raises(FetchFailed) as failed:
            send(GUARDED, "https://rebinding.example.com/")

        assert not isinstance(failed.value, AddressRefused)
        assert connected == ["93.184.216.34"]

    def test_is_not_fooled_by_the_second_answer_of_a_name_server(self, resolver):
        resolver.addresses = ["127.0.0.1", "93.184.216.34"]

        with pytest.raises(AddressRefused):
            send(GUARDED, "https://rebinding.example.com/")

    def test_refuses_private_addresses_behind_a_proxy_too(self):
        with raw_server(lambda connection: None) as port:
            client = Outgoing(only_public=True, proxy=f"http://127.0.0.1:{port}")

            with pytest.raises(AddressRefused):
                send(client, "https://10.0.0.1/")

    def test_names_the_checked_address_to_a_proxy(self, resolver, monkeypatch):
        asked = []

        def answer(connection: socket.socket) -> None:
            asked.append(True)
            connection.sendall(b"HTTP/1.1 502 No\r\n\r\n")

        with raw_server(answer) as port:
            resolver.addresses = ["93.184.216.34", "127.0.0.1"]
            client = Outgoing(only_public=True, proxy=f"http://proxy.example.com:{port}")

            with pytest.raises(FetchFailed) as failed:
                send(client, "https://hooks.example.com/")

        assert not isinstance(failed.value, AddressRefused)
        assert asked == [True]

    def test_sends_no_credentials_of_the_environment(self, monkeypatch, tmp_path):
        (tmp_path / "netrc").write_text("machine 127.0.0.1 login a password b")
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
        with echo_server() as url:
            answer = send(Outgoing(only_public=False), url, max_bytes=4096)

        assert "authorization" not in json.loads(answer.body)


class TestLimits:
    def test_ends_an_answer_that_comes_byte_by_byte(self):
        """Also in the headers, where the time-out of the socket starts again with each byte."""

        def drip(connection: socket.socket) -> None:
            for byte in b"HTTP/1.1 200 OK\r\nX-Long: " + b"a" * 100:
                connection.sendall(bytes([byte]))
                time.sleep(0.05)

        with raw_server(drip) as port:
            started = time.monotonic()
            with pytest.raises(FetchFailed, match="too long"):
                send(OPERATOR, f"http://127.0.0.1:{port}/", timeout=0.5)

        assert time.monotonic() - started < 4

    def test_ends_an_answer_that_never_comes(self):
        ended = threading.Event()
        with raw_server(lambda connection: ended.wait(5)) as port:
            started = time.monotonic()
            with pytest.raises(FetchFailed):
                send(OPERATOR, f"http://127.0.0.1:{port}/", timeout=0.3)

            assert time.monotonic() - started < 4
            ended.set()

    def test_reads_no_more_than_it_was_asked_to(self):
        def flood(connection: socket.socket) -> None:
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + b"a" * 100_000)

        with raw_server(flood) as port:
            answer = send(OPERATOR, f"http://127.0.0.1:{port}/", max_bytes=10)

        assert (answer.body, answer.is_cut) == (b"a" * 10, True)

    def test_does_not_follow_a_redirect(self):
        def redirect(connection: socket.socket) -> None:
            connection.sendall(
                b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n"
            )

        with raw_server(redirect) as port:
            assert send(OPERATOR, f"http://127.0.0.1:{port}/").status == 302

    def test_answers_what_is_no_http_with_an_error(self):
        def nonsense(connection: socket.socket) -> None:
            connection.sendall(b"\xff\x00 nonsense\r\n")

        with raw_server(nonsense) as port, pytest.raises(FetchFailed):
            send(OPERATOR, f"http://127.0.0.1:{port}/")

    def test_keeps_no_cookies(self):
        with echo_server() as url:
            send(OPERATOR, url)
            answer = send(OPERATOR, url, max_bytes=4096)

        assert "cookie" not in json.loads(answer.body)

    def test_uses_a_connection_again(self):
        with echo_server() as url:
            first, second = (json.loads(send(OPERATOR, url, max_bytes=4096).body) for _ in "12")

        assert first["x-port"] == second["x-port"]


@contextmanager
def echo_server() -> Iterator[str]:
    """A server that answers with the request's headers and the client's port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Echo) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join(5)


class _Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        seen = {name.lower(): value for name, value in self.headers.items()}
        body = json.dumps({**seen, "x-port": self.client_address[1]}).encode()
        self.send_response(200)
        self.send_header("Set-Cookie", "a=b")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return

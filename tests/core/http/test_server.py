"""The server: connections, deadlines, limits of memory, and how it stops."""

import socket
import threading
import time
from contextlib import suppress

import pytest

from app.core.http import long_poll, server_channel
from app.core.http import server as module
from tests.core.http.serving import HOST, LARGE, WebProcess, answer, get, received, wait_until

SHORT = 0.3


@pytest.fixture
def start(monkeypatch):
    """Start a web process with settings of gunicorn."""
    monkeypatch.setattr(module, "INTERVAL", 0.1)
    monkeypatch.setattr(long_poll, "stopping", threading.Event())  # other tests do not stop
    started: list[WebProcess] = []

    def begin(**settings: int) -> WebProcess:
        started.append(WebProcess(**settings))
        return started[-1]

    yield begin
    for one in started:
        one.end()


class TestAnswers:
    def test_keep_the_connection(self, start):
        client = start().get("/a")

        first, _ = answer(client)
        client.sendall(get("/b"))

        assert answer(client)[1] == b"/b"
        assert first.getheader("Connection") is None
        assert first.getheader("Server") is None

    def test_have_headers_and_body_in_one_piece(self, start):
        assert start().get("/a").recv(4096).endswith(b"\r\n\r\n/a")

    def test_without_a_body_keep_the_connection(self, start):
        client = start().get("/nothing")

        assert answer(client)[0].status == 204
        client.sendall(get("/b"))
        assert answer(client)[1] == b"/b"

    def test_to_http_1_0_end_the_connection(self, start):
        client = start().client(b"GET /a HTTP/1.0\r\n\r\n")

        assert received(client).endswith(b"\r\n\r\n/a")

    def test_to_http_1_0_keep_the_connection_where_the_client_asks_for_it(self, start):
        client = start().client(b"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" * 2)

        assert answer(client)[0].getheader("Connection") == "Keep-Alive"
        assert answer(client)[1] == b"/a"

    def test_to_head_have_no_body(self, start):
        client = start().client(b"HEAD /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")

        head = received(client)
        assert b"Content-Length: 2" in head
        assert head.endswith(b"\r\n\r\n")

    def test_to_requests_sent_together_come_in_order(self, start):
        paths = [f"/{number}" for number in range(50)]

        client = start(threads=4).get(*paths)

        assert [answer(client)[1].decode() for _ in paths] == paths

    def test_come_though_the_client_sends_nothing_more(self, start):
        client = start().get("/a")
        client.shutdown(socket.SHUT_WR)

        assert answer(client)[1] == b"/a"

    def test_come_whole_though_the_request_is_not_read(self, start):
        head = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n"
        client = start().client(head)
        assert client.recv(12) == b"HTTP/1.1 413"

        client.sendall(b"x" * 1_000_000)

        assert b"larger than this endpoint takes: at most 1048576 bytes" in received(client)

    def test_of_a_program_that_fails_say_nothing(self, start):
        client = start().get("/fail")

        found, body = answer(client)
        assert (found.status, body) == (500, b'{"detail":"Internal Server Error"}')

    def test_of_a_program_that_exits_are_none(self, start):
        process = start(threads=1)

        assert received(process.get("/exit")) == b""
        assert answer(process.get("/a"))[1] == b"/a"


class TestEnvironment:
    def test_has_the_path_as_sent(self, start):
        process = start()

        answer(process.get("//v1//users"))

        assert process.program.paths == ["//v1//users"]

    def test_trusts_no_header_about_proxies(self, start):
        process = start()
        client = process.client(
            b"GET /a HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\nSCRIPT_NAME: /x\r\n"
            b"Script-Name: /x\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Prefix: /x\r\n\r\n"
        )

        answer(client)

        environ = process.program.environ
        assert (environ["REMOTE_ADDR"], environ["wsgi.url_scheme"]) == (HOST, "http")
        assert (environ["SCRIPT_NAME"], environ["PATH_INFO"]) == ("", "/a")
        assert environ["HTTP_X_FORWARDED_FOR"] == "192.0.2.1"  # for ProxyFix to judge

    def test_names_the_address_of_the_connection(self, start):
        process = start()

        answer(process.get("/a"))

        environ = process.program.environ
        assert (environ["SERVER_NAME"], int(environ["SERVER_PORT"])) == process.address


class TestDeadlines:
    @pytest.mark.parametrize(
        "sent",
        [
            b"GET / HTTP/1.1\r\nX-Slow: ",
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 999\r\n\r\n",
        ],
    )
    def test_of_a_request_count_from_its_first_byte(self, start, sent):
        process = start(timeout=1)
        client = process.client(sent)
        client.settimeout(0.1)
        started, found = time.monotonic(), b""
        while not found:
            client.sendall(b"x")
            try:
                found = client.recv(4096)
            except TimeoutError:
                assert time.monotonic() < started + 5

        assert found.startswith(b"HTTP/1.1 408" if b"Length" in sent else b"HTTP/1.0 408")
        assert b'{"detail":"Request Timeout"}' in found + received(client)
        assert process.program.paths == []

    def test_of_a_further_request_count_from_the_end_of_the_one_before(self, start):
        process = start(timeout=1)
        client = process.client(get("/wait") + b"GET /b HT")
        assert process.program.waiting.acquire(timeout=20)
        time.sleep(1.5)

        process.program.released.release()
        answer(client)
        client.sendall(b"TP/1.1\r\nHost: a\r\n\r\n")

        assert answer(client)[1] == b"/b"

    def test_of_a_further_request_count_from_the_end_of_a_long_one(self, start, monkeypatch):
        process = start(keepalive=1)
        (client,) = process.busy()
        delay_threads(process, monkeypatch)  # the loop comes between the answer and the end
        time.sleep(1.1)

        process.program.released.release()

        assert answer(client)[1] == b"/wait"
        time.sleep(SHORT)
        client.sendall(get("/b"))
        assert answer(client)[1] == b"/b"

    def test_of_an_answer_count_from_its_first_byte(self, start, monkeypatch):
        process = start(timeout=1)
        client = slow_reader(process)
        client.sendall(get("/wait-large"))
        assert process.program.waiting.acquire(timeout=20)
        delay_threads(process, monkeypatch)
        time.sleep(1.5)

        process.program.released.release()
        time.sleep(SHORT)

        assert len(answer(client)[1]) == LARGE

    def test_of_a_connection_that_sends_nothing(self, start):
        started = time.monotonic()

        assert received(start(keepalive=1).client()) == b""
        assert 0.9 < time.monotonic() - started < 5

    def test_of_a_connection_that_asks_nothing_more(self, start):
        client = start(keepalive=1).get("/a")
        answer(client)

        assert received(client) == b""

    def test_of_a_connection_that_sends_only_blank_lines(self, start):
        process = start(keepalive=1, timeout=1)
        client = process.client()
        wait_until(lambda: process.channels)
        started = time.monotonic()
        while process.channels and time.monotonic() < started + 10:
            with suppress(OSError):
                client.sendall(b"\r\n")
            time.sleep(0.1)

        assert process.channels == []

    def test_of_an_answer_that_nobody_reads(self, start):
        process = start(timeout=1)
        client = slow_reader(process)
        client.sendall(get("/large"))
        wait_until(lambda: process.program.paths)

        wait_until(lambda: not process.channels)

        with pytest.raises(ConnectionResetError):
            received(client)

    def test_of_an_answer_hold_only_where_the_client_stops_reading(self, start):
        client = slow_reader(start(timeout=2))
        client.sendall(get("/large"))
        started, found = time.monotonic(), 0
        while time.monotonic() < started + 4:
            found += len(client.recv(20_000))
            time.sleep(0.02)
        assert found < LARGE

        while found < LARGE:
            found += len(client.recv(65536))

    def test_do_not_end_what_the_application_works_at(self, start):
        process = start(timeout=1, keepalive=1)
        (client,) = process.busy()
        time.sleep(2)

        process.program.released.release()

        assert answer(client)[1] == b"/wait"

    def test_of_a_client_that_does_not_close(self, start, monkeypatch):
        monkeypatch.setattr(server_channel, "LINGER", SHORT)
        process = start()
        client = process.client(b"GET /a HTTP/1.0\r\n\r\n")
        answer(client)

        wait_until(lambda: not process.channels)


class TestSlowClients:
    def test_that_send_hold_no_thread(self, start):
        process = start(threads=1)
        for _ in range(20):
            process.client(b"GET / HT")
            process.client(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx")

        assert answer(process.get("/a"))[1] == b"/a"

    def test_that_do_not_read_hold_no_thread(self, start):
        process = start(threads=1)
        for _ in range(5):
            slow_reader(process).sendall(get("/large") * 20)

        assert answer(process.get("/a"))[1] == b"/a"
        wait_until(lambda: all(one.is_postponed for one in process.channels if one.requests))
        assert max(one.buffered for one in process.channels) < 2 * LARGE

    def test_that_read_after_all_get_every_answer(self, start):
        client = slow_reader(start(threads=1))
        client.sendall(get("/large") * 5 + get("/last"))
        time.sleep(SHORT)

        for _ in range(5):
            assert len(answer(client)[1]) == LARGE
        assert answer(client)[1] == b"/last"

    def test_that_have_waited_longest_are_ended_where_too_much_is_buffered(
        self, start, monkeypatch
    ):
        monkeypatch.setattr(module, "MAX_BUFFERED", 500_000)
        process = start()
        head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"
        first = process.client(head + b"x" * 300_000)
        wait_until(lambda: process.channels and process.channels[0].buffered == 300_000)
        second = process.client(head + b"x" * 300_000)

        with pytest.raises(ConnectionResetError):
            received(first)
        second.sendall(b"x" * 700_000)
        assert answer(second)[0].status == 200

    def test_that_send_urgent_data_are_closed(self, start):
        process = start()
        client = process.client(b"GET / HT")

        client.send(b"!", socket.MSG_OOB)

        wait_until(lambda: not process.channels)


class TestConnections:
    def test_of_a_process_that_has_more_wait_for_another_one(self, start, monkeypatch):
        monkeypatch.setattr(module, "PAUSE", 60.0)
        monkeypatch.setattr(module, "MAX_PAUSE", 60.0)
        process = start()
        answer(process.get("/a"))
        waiting = process.get("/b")

        other, _ = accept(process)

        assert other.recv(4096) == get("/b")
        other.close()
        waiting.close()

    def test_are_no_more_than_allowed(self, start):
        process = start(worker_connections=6)  # the listening socket and the loop's pipe count too
        for _ in range(20):
            process.client()
        time.sleep(SHORT)

        assert 0 < len(process.channels) <= 6


class TestStopping:
    def test_answers_what_it_has_and_what_waits_in_the_queue(self, start, monkeypatch):
        monkeypatch.setattr(module, "PAUSE", 60.0)
        monkeypatch.setattr(module, "MAX_PAUSE", 60.0)
        process = start(threads=1)
        (client,) = process.busy()
        queued = [process.get(f"/{number}") for number in range(5)]

        process.stop()
        wait_until(lambda: not process.is_listening)
        process.program.released.release()

        for one in (client, *queued):
            assert answer(one)[0].getheader("Connection") == "close"
        assert process.has_ended()

    def test_answers_what_is_arriving(self, start):
        process = start()
        client = process.client(b"GET /a HT")
        wait_until(lambda: process.channels)

        process.stop()
        wait_until(lambda: not process.is_listening)
        client.sendall(b"TP/1.1\r\nHost: a\r\n\r\n")

        assert answer(client)[1] == b"/a"

    def test_answers_all_requests_that_were_sent_together(self, start):
        process = start(threads=1)
        client = process.get("/wait", "/a", "/b")
        assert process.program.waiting.acquire(timeout=20)

        process.stop()
        process.program.released.release()

        found = [answer(client) for _ in range(3)]
        assert [body for _, body in found] == [b"/wait", b"/a", b"/b"]
        assert found[-1][0].getheader("Connection") == "close"

    def test_closes_idle_connections_soon(self, start, monkeypatch):
        monkeypatch.setattr(server_channel, "LINGER", SHORT)
        process = start()
        client = process.get("/a")
        answer(client)

        process.stop()

        assert received(client) == b""
        client.close()
        assert process.has_ended(4)

    def test_ends_in_time_whatever_is_still_open(self, start):
        process = start(graceful_timeout=1)
        process.busy()

        process.stop()

        assert process.has_ended(5)

    def test_comes_after_a_number_of_requests(self, start):
        process = start(max_requests=3)
        client = process.get("/1", "/2", "/3")

        assert [answer(client)[1] for _ in range(3)] == [b"/1", b"/2", b"/3"]
        client.close()
        assert process.has_ended()

    def test_comes_when_the_master_is_gone(self, start):
        process = start()
        process.worker.ppid = -1

        assert process.has_ended()


def slow_reader(process: WebProcess) -> socket.socket:
    """A connection for which the kernel keeps little."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(20)
    client.connect(process.address)
    process.clients.append(client)
    return client


def delay_threads(process: WebProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each thread sleep where it wakes the loop."""
    for server in process.worker.servers:
        wake = server.pull_trigger

        def wake_late(wake=wake):
            time.sleep(SHORT)
            wake()

        monkeypatch.setattr(server, "pull_trigger", wake_late)


def accept(process: WebProcess) -> tuple[socket.socket, object]:
    """The next connection in the queue, which the process leaves to others."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            return process.listener.accept()
        except BlockingIOError:
            time.sleep(0.02)
    raise AssertionError("no connection waits")

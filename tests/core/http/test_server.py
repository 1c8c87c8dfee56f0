"""gunicorn processes with the worker class: slow, broken and malicious clients, and SIGTERM."""

import random
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from tests.core.http.serving import (
    HEADERS,
    LARGE,
    SMALL,
    UPLOAD,
    answer,
    gunicorn,
    received,
    reset,
)
from tests.running.serving import wait_until

EACH = 60
MIB = 1024 * 1024
POST = b"POST /first" + HEADERS
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n"
CODED = b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
SECOND = b"GET /second" + HEADERS + b"\r\n"
CLOSING = SMALL.replace(b"Host: a", b"Host: a\r\nConnection: close")
ONE_ANSWER = {
    "two lengths": POST + b"Content-Length: 0\r\nContent-Length: 44\r\n\r\n",
    "two equal lengths": POST + b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
    "a list of lengths": POST + b"Content-Length: 0, 44\r\n\r\n",
    "a signed length": POST + b"Content-Length: +5\r\n\r\nhello",
    "a length of 5,000 digits": POST + b"Content-Length: %s\r\n\r\n" % (b"9" * 5000),
    "a space before the colon": POST + b"Content-Length : 5\r\n\r\nhello",
    "chunks in HTTP/1.0": b"POST /a HTTP/1.0\r\nConnection: keep-alive\r\n" + CODED,
    "chunks in HTTP/1.2": b"POST /a HTTP/1.2\r\nConnection: keep-alive\r\n" + CODED,
    "two codings": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "two headers of codings": CHUNKED + b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "a coding misspelt": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a coding with a vertical tab": POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "a coding with a space": POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a signed chunk": CHUNKED + b"\r\n+1\r\na\r\n0\r\n\r\n",
    "a hexadecimal chunk": CHUNKED + b"\r\n0x1\r\na\r\n0\r\n\r\n",
    "a chunk with an underscore": CHUNKED + b"\r\n1_0\r\n" + b"a" * 16 + b"\r\n0\r\n\r\n",
    "a negative chunk": CHUNKED + b"\r\n-1\r\na\r\n0\r\n\r\n",
    "a chunk longer than its size": CHUNKED + b"\r\n2\r\nabcdef\r\n0\r\n\r\n",
    "a chunk that ends with a line feed": CHUNKED + b"\r\n1\r\na\n0\r\n\r\n",
    "a size that ends with a line feed": CHUNKED + b"\r\n1\na\r\n0\r\n\r\n",
    "a bare line feed": POST + b"X-A: b\nContent-Length: 44\r\n\r\n",
    "a request of HTTP/0.9": b"GET /first\r\n\r\n",
    "a body above every limit": POST + b"Content-Length: 99999999999\r\n\r\n",
    "large headers": POST + b"X-A: " + b"b" * 40_000 + b"\r\n\r\n",
}
TWO_ANSWERS = {
    "a body that looks like a request": POST + b"Content-Length: %d\r\n\r\n" % len(SECOND) + SECOND,
    "a chunk that looks like a request": CHUNKED
    + b"\r\n%x\r\n" % len(SECOND)
    # Transfer-Encoding counts (RFC 9112, 6.3).
    + SECOND
    + b"\r\n0\r\n\r\n",
    "both lengths": POST + b"Content-Length: 5\r\n" + CODED,
    "both lengths, the other way": CHUNKED + b"Content-Length: 5\r\n\r\n0\r\n\r\n",
}
GONE = [
    SMALL,
    SMALL * 60,
    CLOSING,
    b"GET /sleep/0.01" + HEADERS + b"\r\n",
    (b"GET /large" + HEADERS + b"\r\n") * 5,
    UPLOAD,
    UPLOAD.replace(b"Host: a", b"Host: a\r\nConnection: close"),
    POST + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n",
    POST + b"Content-Length: 99999999999\r\n\r\n" + b"x" * 1_200_000,
    CHUNKED + b"\r\nzz\r\n",
    b"no request\r\n\r\n",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with gunicorn(tmp_path_factory.mktemp("server"), workers=1) as started:
        yield started


class TestAnswers:
    def test_keep_the_connection(self, server):
        client = server.connect(SMALL)
        first, body = answer(client)
        client.sendall(SECOND)

        assert answer(client)[1] == b"/second"
        assert body == b"/small"
        assert {"Connection", "Server"}.isdisjoint(first.headers)

    def test_end_the_connection_where_they_are_large(self, server):
        client = server.connect(b"GET /large" + HEADERS + b"\r\n" + SECOND)

        found, body = answer(client)

        assert (found.getheader("Connection"), len(body)) == ("close", LARGE)
        assert client.recv(1) == b""

    def test_trust_no_header_about_proxies(self, server):
        found = received(server.connect(b"GET /a HTTP/1.0\r\nScript-Name: /x\r\n\r\n"))

        assert found.endswith(b"\r\n\r\n/a")


class TestAmbiguousRequests:
    @pytest.mark.parametrize("name", ONE_ANSWER)
    def test_hide_no_second_request(self, server, name):
        found = b""
        with suppress(ConnectionResetError):
            found = received(server.connect(ONE_ANSWER[name] + SECOND))

        assert found.count(b"HTTP/1.") <= 1
        assert b"/second" not in found

    @pytest.mark.parametrize("name", TWO_ANSWERS)
    def test_are_not_those_with_a_clear_end(self, server, name):
        found = received(server.connect(TWO_ANSWERS[name] + CLOSING))

        assert found.count(b"HTTP/1.1 200") == 2
        assert found.endswith(b"/small")


class TestSlowClients:
    def test_hold_no_thread(self, server, record_property):
        sent = b"GET /" + HEADERS + b"X-A: ", POST + b"Content-Length: 100000\r\n\r\n"
        slow = [server.connect(one) for one in sent for _ in range(EACH)]
        large = (b"GET /large" + HEADERS + b"\r\n") * 20
        unread = [server.connect(large, is_slow=True) for _ in range(EACH)]
        seconds = []
        for _ in range(300):
            for client in slow:
                client.send(b"x")
            started = time.perf_counter()
            with server.connect(SMALL) as client:
                answer(client)
            seconds.append(time.perf_counter() - started)

        p99 = sorted(seconds)[297]
        record_property("p99_ms", round(p99 * 1000))
        assert p99 < 0.2
        for client in slow + unread:
            client.close()

    def test_that_stop_in_large_uploads_cost_others_nothing(self, server):
        """49 of 50 MiB of each import arrive, for which nobody has shown a credential."""
        head = b"POST /v1/imports" + HEADERS + b"Content-Length: %d\r\n\r\n" % (50 * MIB)
        uploads = [server.connect(head) for _ in range(8)]
        kept = server.connect()
        (worker,) = server.workers
        before = worker.memory_info().rss

        with ThreadPoolExecutor(8) as threads:
            sending = [threads.submit(one.sendall, bytes(49 * MIB)) for one in uploads]
            seconds = []
            while len(seconds) < 200 or not all(one.done() for one in sending):
                started = time.perf_counter()
                kept.sendall(SMALL)
                assert answer(kept)[1] == b"/small"
                with server.connect(SMALL) as client:
                    assert answer(client)[1] == b"/small"
                seconds.append(time.perf_counter() - started)

        assert sorted(seconds)[int(0.99 * len(seconds))] < 0.2
        assert worker.memory_info().rss - before < 16 * MIB
        for client in (*uploads, kept):
            client.close()

    def test_are_closed_where_they_are_silent(self, tmp_path):
        with gunicorn(tmp_path, idle=3) as server:
            silent = [server.connect(sent) for sent in (b"", b"GET / HT", SMALL)]
            silent.append(server.connect(b"GET /large" + HEADERS + b"\r\n", is_slow=True))
            wait_until(lambda: server.connections == len(silent), 3)

            wait_until(lambda: server.connections == 0, 15)

    def test_that_send_urgent_data_keep_no_process_busy(self, server):
        client = server.connect(b"GET / HT")

        client.send(b"!", socket.MSG_OOB)

        (worker,) = server.workers
        before = sum(worker.cpu_times()[:2])
        time.sleep(1)
        assert sum(worker.cpu_times()[:2]) - before < 0.1
        client.close()


class TestClientsThatGoAway:
    def test_end_no_process(self, server):
        chance = random.Random(7)

        def go_away(number: int) -> None:
            sent = GONE[number % len(GONE)]
            client = server.connect()
            with suppress(OSError):
                client.sendall(sent[: chance.choice((len(sent), chance.randrange(len(sent))))])
                client.settimeout(chance.choice((0.001, 0.02)))
                if chance.random() < 0.3:
                    client.recv(100)
            chance.choice((reset, socket.socket.close))(client)

        before = server.workers
        with ThreadPoolExecutor(16) as clients:
            list(clients.map(go_away, range(400)))

        assert answer(server.connect(SMALL))[1] == b"/small"
        assert server.workers == before
        assert "Traceback" not in server.log.read_text()


class TestStopping:
    def test_answers_what_has_begun_and_waits_for_no_idle_connection(self, tmp_path):
        with gunicorn(tmp_path) as server:
            idle = server.connect(SMALL)
            answer(idle)
            works = server.connect(b"GET /sleep/4" + HEADERS + b"\r\n")
            arrives = server.connect(UPLOAD[:600_000])
            unread = server.connect(b"GET /large" + HEADERS + b"\r\n", is_slow=True)
            kept = server.connect(SMALL)
            answer(kept)

            server.process.terminate()
            time.sleep(3)  # the loop looks each second
            late = server.connect(SMALL)
            kept.sendall(SECOND)
            arrives.sendall(UPLOAD[600_000:])

            found = [answer(one) for one in (works, arrives, unread, kept)]
            assert [len(body) for _, body in found] == [8, 1_200_007, LARGE, 7]
            assert {one.getheader("Connection") for one, _ in found} == {"close"}
            server.process.wait(10)  # less than IDLE and graceful_timeout
            assert idle.recv(1) == b""
            late.settimeout(0.1)
            with pytest.raises(TimeoutError):
                late.recv(1)

    def test_ends_in_time(self, tmp_path):
        with gunicorn(tmp_path, graceful_timeout=1) as server:
            client = server.connect(b"GET /sleep/60" + HEADERS + b"\r\n")

            server.process.terminate()

            server.process.wait(10)
            client.close()

    def test_comes_after_a_number_of_requests_or_with_the_masters_end(self, tmp_path):
        with gunicorn(tmp_path, max_requests=10) as server:
            before = server.workers

            found = [answer(server.connect(SMALL))[1] for _ in range(12)]

            assert found == [b"/small"] * 12
            wait_until(lambda: server.workers and not set(before) & set(server.workers))
            (worker,) = server.workers
            server.process.kill()
            worker.wait(20)

"""What the server refuses by itself, and the form of its refusals."""

import json
import logging
import re

import pytest

from app.core.http import body_limits
from tests.core.http.serving import WebProcess, answer, get, received

SECOND = get("/second")
POST = b"POST /first HTTP/1.1\r\nHost: a\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n"
REFUSED = {
    "no request at all": (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
    "no version": (b"GET /first\r\n\r\n", 400),
    "an unknown version": (b"GET /first HTTP/2.0\r\n\r\n", 400),
    "a header without a colon": (b"GET /first HTTP/1.1\r\nno header\r\n\r\n", 400),
    "a space before the colon": (POST + b"Content-Length : 5\r\n\r\nhello", 400),
    "a folded header": (POST + b"X-A: b\r\n c\r\n\r\n", 400),
    "a NUL in a header": (POST + b"X-A: \0\r\n\r\n", 400),
    "a bare line feed": (POST + b"X-A: b\nX-C: d\r\n\r\n", 400),
    "a length that is no number": (POST + b"Content-Length: five\r\n\r\nhello", 400),
    "a negative length": (POST + b"Content-Length: -5\r\n\r\nhello", 400),
    "a signed length": (POST + b"Content-Length: +5\r\n\r\nhello", 400),
    "a length of 5,000 digits": (POST + b"Content-Length: %s\r\n\r\n" % (b"9" * 5000), 400),
    "a target that is no URL": (b"GET http://[::1/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "a chunk's size that is no number": (CHUNKED + b"\r\nxyz\r\n", 400),
    "a chunk that does not end": (CHUNKED + b"\r\n2\r\nabcdef\r\n0\r\n\r\n", 400),
    "an endless size of a chunk": (CHUNKED + b"\r\n" + b"1" * 2000, 400),
    "an endless trailer": (CHUNKED + b"\r\n0\r\nX-A: " + b"b" * 2000, 400),
    "a coding that is unknown": (POST + b"Transfer-Encoding: gzip\r\n\r\n", 501),
    "a body above the limit": (POST + b"Content-Length: 1048577\r\n\r\n", 413),
    "a body far above the limit": (POST + b"Content-Length: 99999999999\r\n\r\n", 413),
    "a long path": (b"GET /%s HTTP/1.1\r\nHost: a\r\n\r\n" % (b"a" * 9000), 414),
    "long headers": (POST + b"X-A: " + b"b" * 40_000 + b"\r\n\r\n", 431),
}
AMBIGUOUS = {
    "both lengths": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "both lengths, the other way": CHUNKED + b"Content-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"Content-Length: 0\r\nContent-Length: 44\r\n\r\n",
    "two equal lengths": POST + b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
    "a list of lengths": POST + b"Content-Length: 0, 44\r\n\r\n",
    "chunks in HTTP/1.0": b"POST /first HTTP/1.0\r\nConnection: keep-alive\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks in HTTP/1.2": b"POST /first HTTP/1.2\r\nConnection: keep-alive\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two codings": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "chunked twice": POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "two headers of codings": CHUNKED + b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "an empty coding": POST + b"Transfer-Encoding:\r\nContent-Length: 3\r\n\r\nabc",
    "a coding misspelt": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a coding with a vertical tab": POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "a coding in a folded header": POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "a coding with a space": POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a signed chunk": CHUNKED + b"\r\n+1\r\na\r\n0\r\n\r\n",
    "a hexadecimal chunk": CHUNKED + b"\r\n0x1\r\na\r\n0\r\n\r\n",
    "a chunk with an underscore": CHUNKED + b"\r\n1_0\r\n" + b"a" * 16 + b"\r\n0\r\n\r\n",
    "a negative chunk": CHUNKED + b"\r\n-1\r\na\r\n0\r\n\r\n",
    "a chunk that ends with a line feed": CHUNKED + b"\r\n1\r\na\n0\r\n\r\n",
    "a size that ends with a line feed": CHUNKED + b"\r\n1\na\r\n0\r\n\r\n",
    "a line feed before the end of the line": CHUNKED + b"\r\n1\n\r\na\r\n0\r\n\r\n",
    "an extension with a line feed": CHUNKED + b"\r\n1;a\n\r\na\r\n0\r\n\r\n",
    "an empty line before a chunk": CHUNKED + b"\r\n\r\n1\r\na\r\n0\r\n\r\n",
    "a body above the limit": POST + b"Content-Length: 1048577\r\n\r\n",
    "a request of HTTP/0.9": b"GET /first\r\n\r\n",
}


@pytest.fixture
def process():
    running = WebProcess()
    yield running
    running.end()


class TestRefusals:
    @pytest.mark.parametrize("name", REFUSED)
    def test_have_the_form_of_all_refusals(self, process, name):
        sent, status = REFUSED[name]

        found, body = answer(process.client(sent))

        assert found.status == status
        assert list(json.loads(body)) == ["detail"]
        assert found.getheader("Content-Type") == "application/json"
        assert re.fullmatch("[0-9a-f-]{36}", found.getheader("X-Request-Id"))
        assert found.getheader("Connection") == "close"
        assert process.program.paths == []

    def test_carry_the_request_id_of_the_client(self, process):
        sent = POST + b"X-Request-Id: mine\r\nContent-Length: 1048577\r\n\r\n"

        found, _ = answer(process.client(sent))

        assert found.getheader("X-Request-Id") == "mine"

    def test_are_logged_without_what_was_sent(self, process, caplog):
        with caplog.at_level(logging.INFO):
            received(process.client(b"GET /first HTTP/1.1\r\nAuthorization secret\r\n\r\n"))

        (line,) = [one for one in caplog.records if one.getMessage() == "request_refused"]
        assert line.status == 400
        assert "secret" not in caplog.text


class TestAmbiguousRequests:
    @pytest.mark.parametrize("name", AMBIGUOUS)
    def test_are_refused_and_nothing_after_them_is_read(self, process, name):
        found = received(process.client(AMBIGUOUS[name] + SECOND))

        assert found.count(b"HTTP/1.") == 1
        assert re.match(rb"HTTP/1\.[01] (400|413|501) ", found)
        assert process.program.paths == []

    @pytest.mark.parametrize(
        "sent",
        [
            b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(SECOND) + SECOND,
            b"GET /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(SECOND) + SECOND,
            b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
            b"%x;a=b\r\n%b\r\n0\r\nX-T: r\r\n\r\n" % (len(SECOND), SECOND),
        ],
    )
    def test_are_not_those_whose_body_looks_like_a_request(self, process, sent):
        client = process.client(sent + get("/next"))

        assert [answer(client)[1] for _ in range(2)] == [SECOND, b"/next"]
        assert process.program.paths == ["/echo", "/next"]


class TestBodies:
    def test_cut_short_never_reach_the_application(self, process):
        client = process.client(POST + b"Content-Length: 9\r\n\r\nabc")
        client.close()

        answer(process.get("/a"))

        assert process.program.paths == ["/a"]

    @pytest.mark.parametrize("piece", [1, 100, 65536])
    def test_in_chunks_come_with_their_length(self, process, piece):
        body = b"abcdefghij" * 200
        chunks = [body[at : at + piece] for at in range(0, len(body), piece)]
        framed = b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in [*chunks, b""])

        sent = b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + framed

        assert answer(process.client(sent))[1] == body
        assert process.program.environ["CONTENT_LENGTH"] == "2000"
        assert "HTTP_TRANSFER_ENCODING" not in process.program.environ

    @pytest.mark.parametrize(
        ("path", "limit"), [("/echo", body_limits.MAX_BODY), ("/large", 2**21)]
    )
    def test_may_be_as_large_as_their_path_allows(self, process, monkeypatch, path, limit):
        monkeypatch.setitem(body_limits._LARGER, "/large", 2**21)
        for size, status in ((limit, 200), (limit + 1, 413)):
            head = f"POST {path} HTTP/1.1\r\nHost: a\r\n"
            sized = f"{head}Content-Length: {size}\r\n\r\n".encode() + b"x" * size
            chunked = f"{head}Transfer-Encoding: chunked\r\n\r\n{size:x}\r\n".encode()
            chunked += b"x" * size + b"\r\n0\r\n\r\n"

            found = [answer(process.client(one))[0].status for one in (sized, chunked)]

            assert found == [status, status]

    def test_are_asked_for_only_where_they_are_taken(self, process):
        expect = b"Expect: 100-continue\r\n"
        client = process.client(
            b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n" + expect + b"\r\n"
        )
        assert client.recv(4096) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"ab")

        assert answer(client)[1] == b"ab"
        refused = received(process.client(POST + expect + b"Content-Length: 1048577\r\n\r\n"))
        assert refused.startswith(b"HTTP/1.1 413")
        without = process.client(b"GET /a HTTP/1.1\r\nHost: a\r\n" + expect + b"\r\n")
        assert without.recv(12) == b"HTTP/1.1 200"

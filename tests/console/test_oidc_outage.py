"""Signing in with a provider that does not answer, and what is sent to it."""

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs, urlsplit

import pytest

from app import create_app
from app.auth import oidc
from app.auth.published import Published
from tests.console.conftest import Browser
from tests.hostile.publishing import provider
from tests.running.serving import READY_SECONDS, wait_until

BEGIN = "/console/sign-in/oidc"
LONG = 600.0  # seconds; longer than a test
TOGETHER = 4


@pytest.fixture
def threads():
    with ThreadPoolExecutor(TOGETHER + 1) as pool:
        yield pool


@pytest.fixture
def issuer(monkeypatch, threads):
    """A provider that answers requests for its metadata, and at its token endpoint none.

    The service waits for as long as a test needs. No thread waits for the provider afterwards.
    """
    monkeypatch.setattr(oidc, "TIMEOUT", LONG)
    monkeypatch.setattr(Published, "TIMEOUT", LONG)
    with provider() as (found, _), socket.create_server(("127.0.0.1", 0)) as listener:
        listener.listen(TOGETHER)
        listener.settimeout(READY_SECONDS)
        found.listener = listener
        found.issuer = found.url.removesuffix("/keys")
        endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}"
        names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
        found.body = json.dumps({"issuer": found.issuer} | dict.fromkeys(names, endpoint)).encode()
        yield found
        found.gate.set()


@pytest.fixture
def oidc_app(app, environment, issuer):
    settings = {"OIDC_ISSUER": issuer.issuer, "OIDC_CLIENT_ID": "a", "OIDC_CLIENT_SECRET": "b"}
    return create_app({**environment, **settings}, with_commands=False)


def begin(app):
    return Browser(app).get(BEGIN, headers={})


def finish(browser):
    """Come back from the provider with a code."""
    state = browser.client.get_cookie("console-state").value
    return browser.get(f"/console/sign-in/callback?code=x&state={state}", headers={})


def all_but_one(requests):
    """The answers to all requests except one, which still waits, and this one."""
    wait_until(lambda: sum(request.done() for request in requests) >= len(requests) - 1)
    (waiting,) = [request for request in requests if not request.done()]
    return [request.result() for request in requests if request is not waiting], waiting


class TestMetadata:
    def test_that_never_came_hold_one_thread_once(self, oidc_app, issuer, threads, monkeypatch):
        monkeypatch.setattr(Published, "COOL_DOWN", LONG)
        issuer.gate.clear()
        issuer.status = 500
        requests = [threads.submit(begin, oidc_app) for _ in range(TOGETHER)]

        answers, waiting = all_but_one(requests)
        answers += [begin(oidc_app) for _ in range(2)]  # which do not wait, either
        assert not waiting.done()
        issuer.gate.set()
        answers += [waiting.result(), begin(oidc_app)]

        assert {answer.status_code for answer in answers} == {503}
        assert issuer.fetched == 1

    def test_that_are_old_stay_valid(self, oidc_app, issuer, threads, monkeypatch):
        assert begin(oidc_app).status_code == 303
        monkeypatch.setattr(Published, "MAX_AGE", 0.0)
        monkeypatch.setattr(Published, "COOL_DOWN", 0.0)
        issuer.gate.clear()
        issuer.status = 500
        requests = [threads.submit(begin, oidc_app) for _ in range(TOGETHER)]

        answers, waiting = all_but_one(requests)
        issuer.gate.set()
        answers.append(waiting.result())

        assert {answer.status_code for answer in answers} == {303}
        assert issuer.fetched == 2


class TestCallback:
    def test_does_not_follow_the_host_header(self, oidc_app):
        answer = Browser(oidc_app).get(BEGIN, headers={"Host": "evil.example"})

        query = parse_qs(urlsplit(answer.location).query)
        assert query["redirect_uri"] == ["http://localhost/console/sign-in/callback"]


class TestToken:
    def test_that_never_comes_holds_one_thread(self, oidc_app, issuer, threads):
        browsers = [Browser(oidc_app) for _ in range(TOGETHER)]
        for browser in browsers:
            assert browser.get(BEGIN, headers={}).status_code == 303
        requests = [threads.submit(finish, browser) for browser in browsers]

        refused, waiting = all_but_one(requests)

        assert {(each.status_code, each.headers.get("Refresh")) for each in refused} == {(503, "1")}
        hang_up(issuer.listener)
        assert is_outage(waiting.result())
        # A refused one has lost nothing: its turn comes.
        turn = threads.submit(finish, browsers[requests.index(waiting) - 1])
        hang_up(issuer.listener)
        assert is_outage(turn.result())

    def test_that_comes_byte_by_byte_is_not_waited_for(
        self, oidc_app, issuer, threads, monkeypatch
    ):
        browser = Browser(oidc_app)
        browser.get(BEGIN, headers={})
        monkeypatch.setattr(oidc, "TIMEOUT", 0.5)
        dripping = threads.submit(drip, issuer.listener)

        answer = finish(browser)

        assert is_outage(answer)
        assert dripping.exception() is not None  # the client has ended the connection


def is_outage(answer):
    """Whether it says that the provider was asked, and did not answer."""
    return answer.status_code == 503 and "Refresh" not in answer.headers


def hang_up(listener):
    """End the next connection without an answer."""
    listener.accept()[0].close()


def drip(listener):
    """Answer more slowly than anybody waits."""
    connection, _ = listener.accept()
    with connection:
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b" " * 1000:
            connection.sendall(bytes([byte]))
            time.sleep(0.1)

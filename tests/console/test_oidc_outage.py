"""Signing in with a provider that does not answer, and what is sent to it."""

import json
import socket
import threading
import time
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

import pytest

from app import create_app
from app.auth import oidc
from app.auth.published import Published
from tests.concurrency import at_once
from tests.console.conftest import Browser
from tests.hostile.publishing import provider

BEGIN = "/console/sign-in/oidc"
SLOW = 2.0  # seconds that the provider lets a request wait, at least
TOGETHER = 8


@pytest.fixture
def issuer(monkeypatch):
    """A provider whose metadata can be read, and whose token endpoint never answers."""
    monkeypatch.setattr(oidc, "TIMEOUT", SLOW)
    with provider() as (found, _), socket.create_server(("127.0.0.1", 0)) as silent:
        silent.listen(TOGETHER)
        found.listener = silent
        found.issuer = found.url.removesuffix("/keys")
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
        found.body = json.dumps({"issuer": found.issuer} | dict.fromkeys(names, endpoint)).encode()
        yield found


@pytest.fixture
def oidc_app(app, environment, issuer):
    settings = {"OIDC_ISSUER": issuer.issuer, "OIDC_CLIENT_ID": "a", "OIDC_CLIENT_SECRET": "b"}
    return create_app({**environment, **settings}, with_commands=False)


def timed(browser, path):
    began = time.monotonic()
    answer = browser.get(path, headers={})
    return answer, time.monotonic() - began


def begin_all(app):
    return at_once([lambda: timed(Browser(app), BEGIN) for _ in range(TOGETHER)])


class TestMetadata:
    def test_that_never_came_hold_one_thread_once(self, oidc_app, issuer, monkeypatch):
        monkeypatch.setattr(Published, "TIMEOUT", 3 * SLOW)
        issuer.delay = 3 * SLOW + 1

        found = begin_all(oidc_app) + begin_all(oidc_app)

        assert {answer.status_code for answer, _ in found} == {503}
        assert issuer.fetched == 1
        # One waits; on a machine with other work some take as long by themselves.
        assert 1 <= sum(seconds >= 3 * SLOW for _, seconds in found) <= TOGETHER // 2

    def test_that_are_old_stay_valid(self, oidc_app, issuer, monkeypatch):
        assert Browser(oidc_app).get(BEGIN, headers={}).status_code == 303
        monkeypatch.setattr(Published, "TIMEOUT", SLOW)
        monkeypatch.setattr(Published, "MAX_AGE", 0.0)
        monkeypatch.setattr(Published, "COOL_DOWN", 0.9 * SLOW)
        issuer.delay = SLOW + 1
        time.sleep(SLOW)

        found = begin_all(oidc_app)

        assert {answer.status_code for answer, _ in found} == {303}
        assert issuer.fetched == 2
        assert 1 <= sum(seconds >= SLOW for _, seconds in found) <= TOGETHER // 2


class TestCallback:
    def test_does_not_follow_the_host_header(self, oidc_app):
        answer = Browser(oidc_app).get(BEGIN, headers={"Host": "evil.example"})

        query = parse_qs(urlsplit(answer.location).query)
        assert query["redirect_uri"] == ["http://localhost/console/sign-in/callback"]


class TestToken:
    def test_that_never_comes_holds_one_thread(self, oidc_app):
        browsers = [Browser(oidc_app) for _ in range(TOGETHER)]
        for browser in browsers:
            assert browser.get(BEGIN, headers={}).status_code == 303
        paths = [
            f"/console/sign-in/callback?code=x&state={one.client.get_cookie('console-state').value}"
            for one in browsers
        ]

        found = at_once(
            [
                lambda browser=browser, path=path: timed(browser, path)
                for browser, path in zip(browsers, paths, strict=True)
            ]
        )

        assert {answer.status_code for answer, _ in found} == {503}
        waiting = [answer.headers.get("Refresh") for answer, _ in found]
        assert sorted(waiting, key=str) == ["1"] * (TOGETHER - 1) + [None]
        # A refused one has lost nothing: its turn comes.
        refused = waiting.index("1")
        answer, seconds = timed(browsers[refused], paths[refused])
        assert (answer.status_code, seconds >= SLOW) == (503, True)

    def test_that_comes_byte_by_byte_is_not_waited_for(self, oidc_app, issuer):
        browser = Browser(oidc_app)
        browser.get(BEGIN, headers={})
        state = browser.client.get_cookie("console-state").value
        threading.Thread(target=drip, args=[issuer.listener], daemon=True).start()

        answer, seconds = timed(browser, f"/console/sign-in/callback?code=x&state={state}")

        assert answer.status_code == 503
        assert seconds < 2 * SLOW


def drip(listener):
    connection, _ = listener.accept()
    with suppress(OSError):  # the client ends the connection
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + b" " * 100:
            connection.sendall(bytes([byte]))
            time.sleep(SLOW / 10)

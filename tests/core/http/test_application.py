"""What the application's classes do instead of Flask's: the same, at less cost."""

import io

import flask
import pytest
from flask import session
from werkzeug.exceptions import ClientDisconnected, HTTPException, RequestEntityTooLarge
from werkzeug.test import EnvironBuilder

from app.core.http.application import Request

PLAIN = ["localhost", "api.example.com", "API.Example.com:8443", "10.0.0.1:59999", "a-b", "a" * 63]
PORTS = ["a:80", "a:443", "a:0", "a:00080", "a:08080", "a:65536", "a:99999"]
ODD = [
    "",
    "a..b",
    "a" * 64,
    "[::1]:80",
    "b\u00fccher.example",
    "a b",
    "a/b",
    "a:b:c",
    ".a",
    "a:",
    ":80",
]


def routed(create, host, path, **headers):
    """What the adapter is made of; or the refusal."""
    environ = EnvironBuilder(path=path, query_string="a=%C3%BC&b", headers=headers).get_environ()
    environ["HTTP_HOST"] = host
    try:
        made = create(flask.Request(environ))
    except HTTPException as refused:
        return type(refused)
    return {**vars(made), "path_info": f"/{made.path_info.lstrip('/')}"}


class TestUrlAdapter:
    @pytest.mark.parametrize("host", [*PLAIN, *PORTS, *ODD])
    @pytest.mark.parametrize("path", ["/v1/users", "/v1/%C3%BC/%2F", "//v1"])
    def test_is_as_flask_makes_it(self, app, host, path):
        own, flasks = app.create_url_adapter, super(type(app), app).create_url_adapter

        assert routed(own, host, path) == routed(flasks, host, path)

    def test_of_a_websocket_is_as_flask_makes_it(self, app):
        asked = {"Connection": "Upgrade", "Upgrade": "websocket"}
        own, flasks = app.create_url_adapter, super(type(app), app).create_url_adapter

        made = routed(own, "localhost", "/v1/users", **asked)

        assert made == routed(flasks, "localhost", "/v1/users", **asked)
        assert made["websocket"]

    def test_outside_a_request_there_is_none(self, app):
        assert app.create_url_adapter(None) is None


class TestSessions:
    def test_hold_nothing(self, app):
        with app.test_request_context("/"):
            assert dict(session) == {}
            with pytest.raises(RuntimeError):
                session["a"] = 1


class Gone(io.BytesIO):
    """A client that goes away."""

    def read(self, size=-1):
        raise ConnectionResetError

    readinto = read


def request_of(stream, **environ):
    """A request whose body is read from ``stream``, at most ten bytes."""
    made = Request({**EnvironBuilder().get_environ(), "wsgi.input": stream, **environ})
    made.max_content_length = 10
    return made


class TestBody:
    def test_is_what_was_sent(self):
        made = request_of(io.BytesIO(b"12345678901"), CONTENT_LENGTH="10")

        assert made.get_data() == made.get_data() == b"1234567890"

    @pytest.mark.parametrize("length", [{"CONTENT_LENGTH": "5"}, {"wsgi.input_terminated": True}])
    def test_of_a_client_that_goes_away_is_none_however_often_it_is_asked_for(self, length):
        made = request_of(Gone(b"12345"), **length)

        for _ in range(2):
            with pytest.raises(ClientDisconnected):
                made.get_data()

    def test_that_is_cut_short_is_none(self):
        made = request_of(io.BytesIO(b"1234"), CONTENT_LENGTH="5")

        for _ in range(2):
            with pytest.raises(ClientDisconnected):
                made.get_data()

    @pytest.mark.parametrize("length", [{"CONTENT_LENGTH": "11"}, {"wsgi.input_terminated": True}])
    def test_that_is_too_large_is_none(self, length):
        made = request_of(io.BytesIO(b"12345678901"), **length)

        for _ in range(2):
            with pytest.raises(RequestEntityTooLarge):
                made.get_data()

    def test_of_a_chunk_cut_short_is_none_though_a_part_of_it_can_be_read(self):
        class Cut(io.BytesIO):
            faults = [OSError]

            def readinto(self, buffer):
                if self.faults:
                    raise self.faults.pop()
                return super().readinto(buffer)

        made = request_of(Cut(b"12345"), **{"wsgi.input_terminated": True})

        for _ in range(2):
            with pytest.raises(ClientDisconnected):
                made.get_data()

"""What the application's classes do instead of Flask's: the same, at less cost."""

import flask
import pytest
from flask import session
from werkzeug.exceptions import HTTPException
from werkzeug.test import EnvironBuilder

PLAIN = ["localhost", "api.example.com", "API.Example.com:8443", "10.0.0.1:80", "a-b", "a" * 63]
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
    """What the adapter is made of, but for the port that goes without saying; or the refusal."""
    environ = EnvironBuilder(path=path, query_string="a=%C3%BC&b", headers=headers).get_environ()
    environ["HTTP_HOST"] = host
    try:
        made = create(flask.Request(environ))
    except HTTPException as refused:
        return type(refused)
    name = made.server_name.removesuffix(":80")
    return {**vars(made), "server_name": name, "path_info": f"/{made.path_info.lstrip('/')}"}


class TestUrlAdapter:
    @pytest.mark.parametrize("host", [*PLAIN, *ODD])
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

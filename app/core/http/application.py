"""The application's and the request's classes."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import BytesIO
from typing import IO, Any

import flask
from flask.sessions import NullSession, SessionInterface
from werkzeug.exceptions import ClientDisconnected, HTTPException, RequestEntityTooLarge
from werkzeug.routing import MapAdapter
from werkzeug.utils import cached_property

# What Werkzeug takes for a host as it is: no label that IDNA refuses, no port that goes without saying.
PLAIN_HOST = re.compile(
    r"[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*(:([1-9][0-9]{3}|[1-5][0-9]{4}))?", re.ASCII
)


class NoSessions(SessionInterface):
    """Nobody has a session here; one that refuses to be written to serves all requests."""

    nothing = NullSession()

    def open_session(self, app: flask.Flask, request: flask.Request) -> NullSession:
        """The one that holds nothing."""
        return self.nothing


class Application(flask.Flask):
    """Flask's application, whose views are all plain functions, and which has no sessions."""

    session_interface = NoSessions()

    def create_url_adapter(self, request: flask.Request | None) -> MapAdapter | None:
        """What finds the route. None depends on the host, at which Flask's looks three times.

        So TRUSTED_HOSTS and SERVER_NAME mean nothing here, but for what is left to Flask: a host
        that may be none, and the beginnings of a WebSocket.
        """
        if request is None:
            return super().create_url_adapter(request)
        environ = request.environ
        host = environ.get("HTTP_HOST", "").lower()
        if "HTTP_UPGRADE" in environ or not PLAIN_HOST.fullmatch(host):
            return super().create_url_adapter(request)
        return MapAdapter(
            self.url_map,
            server_name=host,
            script_name=request.root_path,
            subdomain=self.url_map.default_subdomain,
            url_scheme=request.scheme,
            path_info=request.path,
            default_method=request.method,
            query_args=request.query_string.decode(errors="replace"),
        )

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """The function itself: Flask looks at each one in each request whether it is a coroutine."""
        return func


class Request(flask.Request):
    """Flask's request: its body is whole and not too large, or there is none.

    Werkzeug cuts a body of unknown length (chunked) off at the limit, and takes what a client sent
    before it went away for the whole body.
    """

    _refusal: type[HTTPException] | None = None

    @cached_property
    def stream(self) -> IO[bytes]:
        """The body; one of known length is read in one go, where Werkzeug reads piece by piece.

        Of a server's ``read(length)``, as of gunicorn's, less is expected only from a client that is gone.
        """
        length, most = self.content_length, self.max_content_length
        if length is None or (most is not None and length > most):
            return super().stream
        try:
            return BytesIO(self.environ["wsgi.input"].read(length))
        except (OSError, ValueError) as fault:
            raise ClientDisconnected from fault

    def get_data(self, *args: Any, **options: Any) -> Any:
        """The body; raises RequestEntityTooLarge (413) and ClientDisconnected (400), each time anew."""
        if self._refusal is not None:  # what is left to be read is not the whole body
            raise self._refusal
        try:
            body = super().get_data(*args, **options)
            self._check(body)
        except (RequestEntityTooLarge, ClientDisconnected) as fault:
            self._refusal = type(fault)
            raise
        return body

    def _check(self, body: bytes) -> None:
        if self.content_length is None:
            if self.max_content_length is not None and len(body) >= self.max_content_length:
                raise RequestEntityTooLarge
        elif len(body) < self.content_length:
            raise ClientDisconnected


def current_request() -> Request:
    """The request itself, to be used more than once: Flask's proxy looks for it at each use."""
    found: Request = flask.request._get_current_object()  # type: ignore[attr-defined]
    return found

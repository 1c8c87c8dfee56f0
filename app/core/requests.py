"""The application's and the request's classes."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import IO, Any

import flask
from werkzeug.exceptions import ClientDisconnected, RequestEntityTooLarge
from werkzeug.utils import cached_property


class Application(flask.Flask):
    """Flask's application, whose views are all plain functions."""

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """The function itself: Flask looks at each one in each request whether it is a coroutine."""
        return func


class Request(flask.Request):
    """Flask's request: its body is whole and not too large, or there is none.

    Werkzeug cuts a body of unknown length (chunked) off at the limit, and takes what a client sent
    before it went away for the whole body.
    """

    @cached_property
    def stream(self) -> IO[bytes]:
        """The body; one of known length is read in one go, where Werkzeug reads piece by piece."""
        length, most = self.content_length, self.max_content_length
        if length is None or (most is not None and length > most):
            return super().stream
        try:
            return BytesIO(self.environ["wsgi.input"].read(length))
        except (OSError, ValueError) as fault:
            raise ClientDisconnected from fault

    def get_data(self, *args: Any, **options: Any) -> Any:
        """The body; raises RequestEntityTooLarge (413) and ClientDisconnected (400)."""
        body = super().get_data(*args, **options)
        if self.content_length is None:
            if self.max_content_length is not None and len(body) >= self.max_content_length:
                raise RequestEntityTooLarge
        elif len(body) < self.content_length:
            raise ClientDisconnected
        return body


def current_request() -> Request:
    """The request itself; Flask's proxy looks for it anew at each use."""
    found: Request = flask.request._get_current_object()  # type: ignore[attr-defined]
    return found

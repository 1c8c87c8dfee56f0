"""The request as views get it: its body is whole and not too large, or there is none."""

from __future__ import annotations

from typing import Any

import flask
from werkzeug.exceptions import ClientDisconnected, RequestEntityTooLarge


class Request(flask.Request):
    """Flask's request, without silently shortened bodies.

    Werkzeug cuts a body of unknown length (chunked) off at the limit, and takes what a client sent
    before it went away for the whole body.
    """

    def get_data(self, *args: Any, **options: Any) -> Any:
        """The body; raises RequestEntityTooLarge (413) and ClientDisconnected (400)."""
        body = super().get_data(*args, **options)
        if self.content_length is None:
            if self.max_content_length is not None and len(body) >= self.max_content_length:
                raise RequestEntityTooLarge
        elif len(body) < self.content_length:
            raise ClientDisconnected
        return body

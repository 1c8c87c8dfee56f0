"""Requests to the service's own API, in this process."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import Context
from typing import Any
from wsgiref.types import WSGIApplication

from flask import Flask
from werkzeug.test import Client

from app.core.db.replicas import reading
from app.surfaces.operations import JSON, Answer, Operation, Request, operations_of


class InProcess:
    """Sends requests; ``environ`` is added to the WSGI environment of each.

    A read sees what earlier requests have changed, also on a replica.
    """

    def __init__(self, app: WSGIApplication, environ: Mapping[str, Any] | None = None) -> None:
        self.app = app
        self._environ = dict(environ or {})
        self._last_change = ""

    def __call__(self, request: Request) -> Answer:
        """Send a request. It runs in an empty context: it has its own transaction."""
        return Context().run(self._send, request)

    def _send(self, request: Request) -> Answer:
        headers = dict(request.headers)
        if self._last_change:
            headers[reading.HEADER] = self._last_change
        is_raw = isinstance(request.body, bytes)
        response = Client(self.app, use_cookies=False).open(
            request.path,
            method=request.method,
            query_string=request.query,
            headers=headers,
            environ_overrides=self._environ,
            data=request.body if is_raw else None,
            json=None if is_raw else request.body,
        )
        self._last_change = response.headers.get(reading.HEADER, self._last_change)
        body = response.get_json() if response.mimetype == JSON else response.text or None
        return Answer(response.status_code, dict(response.headers), body)


def operations(app: Flask) -> list[Operation]:
    """The operations of the service's own OpenAPI document, in its order."""
    return operations_of(Client(app).get("/openapi.json").get_json())

"""Requests as bytes: a WSGI environment as a server builds it, with nothing made right on the way."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import Any
from urllib.parse import unquote_to_bytes

from flask import Flask
from werkzeug.datastructures import Headers
from werkzeug.test import run_wsgi_app


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Headers
    data: bytes

    @property
    def mimetype(self) -> str:
        return self.headers.get("Content-Type", "").partition(";")[0]

    @cached_property
    def json(self) -> Any:
        """The body; ValueError where it is no JSON by the letter (NaN is none)."""
        return json.loads(self.data.decode(), parse_constant=_refuse)


def send(
    app: Flask,
    method: str,
    target: str,
    *,
    token: str | None = None,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Send one request; ``target`` is what stands in the request line, escapes and all."""
    path, _, query = target.partition("?")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method.upper(),
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": query,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": "localhost",
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": BytesIO(body or b""),
        "wsgi.input_terminated": True,
        "wsgi.errors": None,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    if token is not None:
        environ["HTTP_AUTHORIZATION"] = f"Bearer {token}"
    if body is not None:
        environ["CONTENT_TYPE"] = "application/json"
        environ["CONTENT_LENGTH"] = str(len(body))
    for name, value in (headers or {}).items():
        key = name.upper().replace("-", "_")
        environ[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"] = value
    parts, status, found = run_wsgi_app(app.wsgi_app, environ, buffered=True)
    return Answer(int(status[:3]), found, b"".join(parts))


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")

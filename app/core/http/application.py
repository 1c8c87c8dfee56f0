"""Flask without what no request here uses: 4 % of the processor time of a GET."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flask
from flask import Flask
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface

from app.core.http.request import Request


class NoSessions(SecureCookieSessionInterface):
    """No session cookies: the console has its own, see :mod:`app.auth.sessions`."""

    def open_session(self, app: Flask, request: flask.Request) -> SecureCookieSession | None:
        return None


class Application(Flask):
    """Flask with views that are never coroutines, so nothing asks each view whether it is one."""

    request_class = Request
    session_interface = NoSessions()

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        return func

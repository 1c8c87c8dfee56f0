"""The console's cookies: their names and attributes."""

from __future__ import annotations

from urllib.parse import urlsplit

from flask import request
from werkzeug.wrappers import Response

COOKIE = "console"
LOOPBACK = {"127.0.0.1", "localhost", "::1"}


def set_cookie(response: Response, name: str, value: str, seconds: int) -> None:
    response.set_cookie(
        name,
        value,
        max_age=seconds,
        path="/",
        secure=name.startswith("__Host-"),
        httponly=True,
        samesite="Lax",
    )


def cookie_name() -> str:
    """``__Host-console``: browsers accept it only from this host, over https, for all paths.

    Over plain http on loopback, where browsers refuse the prefix, the name has none.
    """
    is_local = not request.is_secure and urlsplit(request.host_url).hostname in LOOPBACK
    return COOKIE if is_local else f"__Host-{COOKIE}"

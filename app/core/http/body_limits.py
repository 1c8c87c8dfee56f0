"""The largest size of a request's body in bytes, by path. A larger body is answered with 413."""

from __future__ import annotations

MAX_BODY = 1024 * 1024
TOO_LARGE = "The request body is larger than this endpoint takes: at most {limit} bytes."

_LARGER: dict[str, int] = {}


def allow_body(path: str, limit: int) -> None:
    """Allow bodies of ``limit`` bytes at exactly ``path``. Call it while the app is created."""
    _LARGER[path] = limit


def body_limit(path: str) -> int:
    """The limit in bytes. Flask applies it when a view or a hook reads the body."""
    return _LARGER.get(path, MAX_BODY)


def largest_body() -> int:
    """The largest limit of any path. The server refuses a larger body while it arrives."""
    return max((MAX_BODY, *_LARGER.values()))

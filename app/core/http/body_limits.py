"""How many bytes a request's body may have, by path; larger bodies are answered with 413."""

from __future__ import annotations

MAX_BODY = 1024 * 1024
TOO_LARGE = "The request body is larger than this endpoint takes: at most {limit} bytes."

_LARGER: dict[str, int] = {}


def allow_body(path: str, limit: int) -> None:
    """Let requests to exactly ``path`` have a body of ``limit`` bytes. Call when the application is made."""
    _LARGER[path] = limit


def body_limit(path: str) -> int:
    """The limit in bytes, which Flask applies when a body is read."""
    return _LARGER.get(path, MAX_BODY)


def largest_body() -> int:
    """The largest limit of all paths; the server refuses more while it arrives."""
    return max((MAX_BODY, *_LARGER.values()))

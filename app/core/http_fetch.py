"""Reading a small document from another service by HTTP, with bounds on time and size."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Any


class FetchFailed(Exception):
    """``status`` is the answer's status if it is not 200; None without a complete answer."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Treats a redirect as an error answer."""

    def redirect_request(self, *_: Any) -> None:
        return None


def fetch(url: str, *, timeout: float, max_bytes: int, follow_redirects: bool = False) -> bytes:
    """The body of a 200 answer; raises FetchFailed.

    ``timeout``: seconds for connecting, for each read, and for the complete body. The caller checks
    the scheme and the host of an untrusted URL.
    """
    handlers = [] if follow_redirects else [NoRedirects()]
    opener = urllib.request.build_opener(*handlers)
    deadline, body = time.monotonic() + timeout, b""
    try:
        with opener.open(url, timeout=timeout) as answer:
            while part := answer.read1():
                body += part
                if time.monotonic() > deadline:
                    raise FetchFailed("the answer takes too long")
                if len(body) > max_bytes:
                    raise FetchFailed("the answer is too large")
            if answer.status != 200:
                raise FetchFailed(f"status {answer.status}", answer.status)
    except urllib.error.HTTPError as refusal:
        refusal.close()
        raise FetchFailed(f"status {refusal.code}", refusal.code) from None
    except (OSError, HTTPException, ValueError) as fault:
        raise FetchFailed(f"no answer: {type(fault).__name__}") from fault
    return body

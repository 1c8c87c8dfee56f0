"""The request that this thread answers, with what its steps leave for later ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from uuid import UUID

import flask
from flask.globals import request_ctx

if TYPE_CHECKING:
    from app.core.http.idempotency import Key
    from app.core.http.includes import Include
    from app.core.http.rate_counts import Usage


class Request(flask.Request):
    """Flask's request, with what is known of this one."""

    started: float  # time.perf_counter()
    usage: Usage | None = None  # of the rate limit that the request was counted against last
    principal: object = None  # app.auth.guard.current_principal() has its type
    credential = ""  # the scope of idempotency keys; "" for a public endpoint
    api_key_id: UUID | None = None
    key: Key | None = None  # the Idempotency-Key, where its first request is running
    repeatable_body: bytes | None = None  # the body to store where the answer has a secret
    includes: tuple[Include, ...] = ()  # what ?include= asks for


def current_request() -> Request:
    """The current request itself, in place of Flask's proxy; RuntimeError outside one."""
    return cast("Request", request_ctx.request)

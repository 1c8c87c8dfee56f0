"""Flask's request, with attributes that an early step of a request sets for a later step."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from uuid import UUID

import flask
from flask.globals import request_ctx

if TYPE_CHECKING:
    from app.core.http.includes import Include
    from app.core.http.rate_counts import Usage


class Request(flask.Request):
    """Flask's request with this service's attributes."""

    started: float  # time.perf_counter()
    usage: Usage | None = None  # the state of the rate limit that counted the request last
    principal: object = None  # a Principal; use app.auth.guard.current_principal()
    proof: object = None  # an app.auth.proofs.Proof; None for the console and commands
    credential = ""  # the scope of idempotency keys; "" for a public endpoint
    api_key_id: UUID | None = None
    key: dict[str, str] | None = None  # of IdempotencyKey, if this is the first request with it
    repeatable_body: bytes | None = None  # the body to store if the answer contains a secret
    includes: tuple[Include, ...] = ()  # what ?include= asks for


def current_request() -> Request:
    """The current request itself, not Flask's proxy of it; RuntimeError outside a request."""
    return cast("Request", request_ctx.request)

"""The state of the request that this thread answers."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING
from uuid import UUID

from flask import Request

if TYPE_CHECKING:
    from app.core.http.idempotency import Key
    from app.core.http.includes import Include
    from app.core.http.rate_counts import Usage


@dataclass(slots=True)
class RequestState:
    """What later steps need to know of a request; begun and ended by its hooks."""

    request: Request
    started: float = field(default_factory=perf_counter)
    usage: Usage | None = None  # of the rate limit that the request was counted against last
    principal: object = None  # app.auth.guard.current_principal() has its type
    credential: str = ""  # the scope of idempotency keys; "" for a public endpoint
    api_key_id: UUID | None = None
    key: Key | None = None  # the Idempotency-Key, where its first request is running
    repeatable_body: bytes | None = None  # the body to store where the answer has a secret
    includes: tuple[Include, ...] = ()
    outer: RequestState | None = None  # of a request that makes this one


_current: ContextVar[RequestState | None] = ContextVar("request_state", default=None)


def begin(request: Request) -> RequestState:
    """Begin a request: its state is the current one until :func:`end`."""
    state = RequestState(request, outer=_current.get())
    _current.set(state)
    return state


def end() -> None:
    """End the request: the state of the request around it is the current one again."""
    state = _current.get()
    if state is not None:
        _current.set(state.outer)


def current_state() -> RequestState:
    """The state of the current request; RuntimeError outside one."""
    state = _current.get()
    if state is None:
        raise RuntimeError("this needs a request")
    return state

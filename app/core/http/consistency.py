"""Where a request reads: on a replica, or on the primary; see :mod:`app.core.db.replicas`.

A client reads what it has written: the answer of each change has an ``X-Consistency`` header, which
is the primary's WAL position after the commit. A request that sends it back reads from a replica
that has replayed that far, or from the primary. Without replicas there is no such header, and one
that is sent is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from flask import Request, Response, current_app

from app.core.db import transactions
from app.core.db.replicas import EXTENSION, PRIMARY, Replicas
from app.core.db.transactions import Transaction
from app.core.errors import Invalid, value_error
from app.core.http import long_poll
from app.core.observability.metrics import count_read

View = TypeVar("View", bound=Callable[..., Any])

HEADER = "X-Consistency"
LOCATION = ("header", HEADER.lower())
POSITION = re.compile(r"([0-9A-F]{1,8})/([0-9A-F]{1,8})")
SAFE_METHODS = ("GET", "HEAD")


def reads_only(view: View) -> View:
    """Let a POST view read from replicas. It is the innermost decorator."""
    view.reads_only = True  # type: ignore[attr-defined]
    return view


def reads_primary(view: View) -> View:
    """Let a GET view read from the primary, because that is what it is about.

    It is the innermost decorator.
    """
    view.reads_primary = True  # type: ignore[attr-defined]
    return view


def run(
    view: Callable[..., Any],
    request: Request,
    enter: Callable[[], None],
    work: Callable[[], Response],
) -> Response:
    """``enter()``, which authenticates, and then ``work()``, the answer.

    All runs in one transaction on the primary, except a read from a replica: there only ``enter()``
    runs on the primary, in one round trip. A long poll that has waited reads from the primary, which
    has what it waited for. Raises Invalid for a malformed ``X-Consistency`` of a
    read.
    """
    replicas: Replicas | None = current_app.extensions.get(EXTENSION)
    is_guarded = getattr(view.access, "permission", None) is not None  # type: ignore[attr-defined]
    if replicas is None or not is_guarded or hasattr(view, "reads_primary"):
        return transactions.run(partial(_both, enter, work))
    if not _only_reads(view, request):
        return _change(partial(_both, enter, work))
    return _read(replicas, request.headers.get(HEADER), enter, work)


def shown(position: int) -> str:
    """A WAL position as PostgreSQL shows it: two hexadecimal numbers."""
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


def is_token(text: str) -> bool:
    """Whether ``text`` has the form of the header's values."""
    return POSITION.fullmatch(text) is not None


def _only_reads(view: Callable[..., Any], request: Request) -> bool:
    """Whether the request changes nothing; an ``Idempotency-Key`` of a POST is stored."""
    if request.method in SAFE_METHODS:
        return True
    return hasattr(view, "reads_only") and "Idempotency-Key" not in request.headers


def _read(
    replicas: Replicas, token: str | None, enter: Callable[[], None], work: Callable[[], Response]
) -> Response:
    after = _position(token)

    def entered() -> dict[str, Any]:
        enter()
        if after is None:
            raise Invalid(value_error(LOCATION, "this is no token that an answer had", token))
        return transactions.context()

    must_be_primary = after is None or long_poll.has_waited()
    replica = None if must_be_primary else replicas.choose(after or 0)
    if replica is None:
        response = transactions.run(partial(_both, entered, work))
        count_read(PRIMARY)
        return response
    facts = transactions.run(entered, partial(Transaction, begin=""))
    return replicas.read(replica, work, facts, after=after or 0)


def _change(work: Callable[[], Response]) -> Response:
    def change() -> tuple[Response, Transaction]:
        current = transactions.current_transaction()
        current.tells_position = True
        return work(), current

    response, committed = transactions.run(change)
    if committed.position is not None:
        response.headers[HEADER] = shown(committed.position)
    return response


def _position(token: str | None) -> int | None:
    """The position of a token, 0 without one; None for a malformed one."""
    if token is None:
        return 0
    found = POSITION.fullmatch(token)
    return None if found is None else int(found[1], 16) << 32 | int(found[2], 16)


def _both(enter: Callable[[], Any], work: Callable[[], Response]) -> Response:
    enter()
    return work()

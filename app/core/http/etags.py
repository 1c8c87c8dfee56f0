"""Version-checked access: ``ETag``, ``If-Match`` and ``If-None-Match`` (RFC 9110 §13.1).

One mechanism for all resources: the tag is the row's version. ``If-Match`` is optional and
compared strongly under the row's lock, so of many writers with one tag exactly one wins.
``If-None-Match`` is compared weakly.
"""

from __future__ import annotations

from typing import Protocol

from werkzeug.http import parse_etags

from app.core.db import transactions
from app.core.errors import PreconditionFailed


class Versioned(Protocol):
    """Anything with a version that grows with each change."""

    version: int


def etag_of(row: Versioned) -> str:
    """The row's entity tag, unquoted."""
    return str(row.version)


def expect(if_match: str | None) -> None:
    """Hold the current transaction's target row to an ``If-Match`` header."""
    if if_match is not None:
        transactions.context()["if_match"] = parse_etags(if_match)


def check_precondition(row: Versioned) -> None:
    """Raise PreconditionFailed where the request's ``If-Match`` does not name this version."""
    tags = transactions.context().get("if_match")
    if tags is not None and not tags.contains(etag_of(row)):
        raise PreconditionFailed


def is_current(row: Versioned, if_none_match: str | None) -> bool:
    """Whether ``If-None-Match`` names this version, so that 304 is the answer."""
    return if_none_match is not None and parse_etags(if_none_match).contains_weak(etag_of(row))

"""Conditional requests: ``ETag``, ``If-Match`` and ``If-None-Match`` (RFC 9110 §13.1).

The tag is the row's version. ``If-Match`` is optional and compared strongly under the row's lock
(:func:`app.core.db.queries.check_precondition`), so of many writers with one tag exactly one wins.
``If-None-Match`` is compared weakly.
"""

from __future__ import annotations

from typing import Protocol

from werkzeug.http import parse_etags

from app.core.db import transactions


class Versioned(Protocol):
    """A row whose version grows with each change."""

    @property
    def version(self) -> int:
        """1 for a new row."""


def etag_of(row: Versioned) -> str:
    """The row's entity tag, unquoted."""
    return str(row.version)


def expect(if_match: str | None) -> None:
    """Compare an ``If-Match`` header with the row that the current transaction locks later."""
    if if_match is not None:
        transactions.context()["if_match"] = parse_etags(if_match)


def is_current(row: Versioned, if_none_match: str | None) -> bool:
    """Whether ``If-None-Match`` names this version, so that 304 is the answer."""
    return if_none_match is not None and parse_etags(if_none_match).contains_weak(etag_of(row))

"""Lists: filters in the URL, 50 rows a page, newest first, with a link to the next page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from flask import request

from app.console.api import MOST_OF_A_PAGE, Refused, call
from app.console.forms import Choices
from app.core.json_text import Json

PAGE = 50


@dataclass(frozen=True)
class Filter:
    """A filter of a list; with ``choices`` it is a menu."""

    name: str
    label: str
    choices: Choices = ()
    kind: str = "text"


@dataclass
class Listing:
    filters: Sequence[Filter]
    values: dict[str, str]
    rows: list[Json] = field(default_factory=list)
    next_url: str = ""
    errors: dict[str, str] = field(default_factory=dict)  # by filter
    problem: str = ""

    @property
    def is_filtered(self) -> bool:
        return bool(self.values)


STATE = Filter("is_active", "State", [("true", "active"), ("false", "inactive")])


def filter_values(filters: Sequence[Filter]) -> dict[str, str]:
    """The values that the URL gives to the filters."""
    given = {one.name: request.args.get(one.name, "").strip() for one in filters}
    return {name: value for name, value in given.items() if value}


def list_rows(
    path: str, filters: Sequence[Filter] = (), *, most: int = PAGE, **fixed: object
) -> Listing:
    """Up to ``most`` rows that the filters in the URL choose; ``fixed`` is more of the query.

    A filter that the API refuses is an error beside it. Raises Refused for any other error.
    """
    listing = Listing(filters, filter_values(filters))
    cursor = request.args.get("cursor", "")
    while True:
        query = {"limit": min(most, MOST_OF_A_PAGE), **fixed}
        cursor = _read_page(listing, path, query, cursor)
        if not cursor or len(listing.rows) >= most:
            return listing


def _read_page(listing: Listing, path: str, fixed: dict[str, object], cursor: str) -> str:
    """Add one page to the listing; returns the cursor of the next one."""
    query = {"order": "-created_at", "cursor": cursor or None, **listing.values, **fixed}
    answer = call("GET", path, query=query)
    if answer.status in (409, 422):
        listing.problem = answer.detail or "The list cannot be shown with these filters."
        names = {one.name for one in listing.filters}
        for entry in answer.entries:
            if entry["loc"][-1] in names:
                text = entry["msg"].removeprefix("Value error, ")
                listing.errors[entry["loc"][-1]] = text
        return ""
    if not answer.is_ok:
        raise Refused(answer)
    listing.rows += answer.data
    further: str = answer.body.get("next_cursor") or ""
    address = f"{request.path}?{urlencode({**listing.values, 'cursor': further})}"
    listing.next_url = address if further else ""
    return further

"""Lists: filters in the URL, 50 rows a page, newest first, with a link to the next page; as CSV."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache, reduce
from typing import Any
from urllib.parse import urlencode
from uuid import UUID
from zoneinfo import ZoneInfo

from flask import Response, request

from app.console.api import MOST_OF_A_PAGE, Refused, call, get, get_all
from app.console.blueprint import Shown, page, render
from app.console.fields import Choices
from app.core.csv_text import as_csv
from app.core.json_text import Json, dumps_text

PAGE = 50
LINES = 10_000  # of a CSV file
ID = re.compile(r"[0-9a-fA-F-]{36}|[a-z]+:.+")  # of a row, or of an actor


@dataclass(frozen=True)
class Filter:
    """A filter of a list; with ``choices`` it is a menu.

    ``kind`` is a type of <input>. A date is one of the reader's zone, and the last one of a period
    is included. A row is an id, or a name that the search finds among rows of ``types``.
    """

    name: str
    label: str
    choices: Choices | Callable[[], Choices] = ()
    kind: str = "text"
    types: str = ""
    is_rare: bool = False  # shown when asked for


@dataclass
class Listing:
    filters: Sequence[Filter]
    values: dict[str, str]
    rows: list[Json] = field(default_factory=list)
    next_url: str = ""
    errors: dict[str, str] = field(default_factory=dict)  # by filter
    found: list[tuple[Json, str]] = field(default_factory=list)  # what a name may mean, addresses
    problem: str = ""
    zone: str = field(default_factory=lambda: request.args.get("zone", ""))

    @property
    def is_filtered(self) -> bool:
        return bool(self.values)

    @property
    def order(self) -> str:
        return "created_at" if request.args.get("order") == "created_at" else "-created_at"

    def url(self, **changes: str) -> str:
        """The address of this list with other values; empty ones are left out."""
        values = {**self.values, "order": request.args.get("order"), "zone": self.zone, **changes}
        return f"{request.path}?{urlencode({name: one for name, one in values.items() if one})}"


NAME = Filter("q", "Name or e-mail")
STATE = Filter("is_active", "State", [("true", "active"), ("false", "inactive")])
DATES = (
    Filter("created_after", "Created from", kind="date", is_rare=True),
    Filter("created_before", "Created to", kind="date", is_rare=True),
)


def plans() -> Choices:
    """The names of all plans."""
    names = sorted(each["name"] for each in get_all("/v1/billing/plans"))
    return [(name, name) for name in names]


@cache
def documented_choices(path: str, name: str) -> Choices:
    """The values that the API's document names for a parameter of a list."""
    parameters = get("/openapi.json").body["paths"][path]["get"]["parameters"]
    values = next(each["schema"]["enum"] for each in parameters if each["name"] == name)
    return [(value, value.replace("_", " ")) for value in sorted(values)]


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
    most = LINES if _is_csv() else most
    query = {"limit": min(most, MOST_OF_A_PAGE), **_query_values(listing), **fixed}
    while not listing.errors:
        cursor = _read_page(listing, path, query, cursor)
        if not cursor or len(listing.rows) >= most:
            break
    return listing


def list_page(
    place: str,
    template: str,
    title: str,
    path: str,
    columns: str,
    filters: Sequence[Filter] = (),
    *,
    also_of_tenant: bool = False,
    shown: Mapping[str, object] | None = None,
    **fixed: Any,
) -> None:
    """Show a list at ``place``; its view is ``list_`` and the template's name.

    ``shown`` are values for the template, ``fixed`` is more of the query.
    """

    def view(tenant_id: UUID | None = None) -> Shown:
        listing = list_rows(path, filters, tenant_id=tenant_id, **fixed)
        return show_list(template, title, listing, columns, **(shown or {}))

    view.__name__ = f"list_{template}"
    page(place, also_of_tenant=also_of_tenant)(view)


def show_list(template: str, title: str, listing: Listing, columns: str, **values: object) -> Shown:
    """The page of a list; with ``format=csv`` in the URL the ``columns`` of its rows as CSV."""
    if not _is_csv() or listing.errors or listing.problem:
        return render(template, title, listing=listing, has_csv=True, **values)
    names = columns.split()
    rows = [{name: _value(row, name) for name in names} for row in listing.rows]
    disposition = {"Content-Disposition": f'attachment; filename="{template}.csv"'}
    return Response(
        as_csv(names, rows), content_type="text/csv; charset=utf-8", headers=disposition
    )


def _query_values(listing: Listing) -> dict[str, object]:
    """The filters' values as the API takes them; what cannot be read is an error of the listing."""
    values: dict[str, object] = dict(listing.values)
    for one in listing.filters:
        text = listing.values.get(one.name, "")
        try:
            if text and one.kind == "date" and "T" not in text:
                values[one.name] = _moment(text, listing.zone, is_end="before" in one.name)
            elif text and one.kind == "row" and not ID.fullmatch(text):
                values[one.name] = _row_id(one, text, listing)
        except ValueError as fault:
            listing.errors[one.name] = str(fault)
            listing.problem = "The list cannot be shown with these filters."
    return values


def _moment(text: str, zone: str, *, is_end: bool) -> str:
    """The beginning of a day of the reader's zone, or of the next day."""
    try:
        day = datetime.fromisoformat(text) + timedelta(days=is_end)
    except (ValueError, OverflowError):
        raise ValueError("This is not a date.") from None
    return day.replace(tzinfo=zone_of(zone)).isoformat()


def zone_of(name: str) -> tzinfo:
    """The time zone of this name; UTC for an unknown name."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return UTC


def _row_id(one: Filter, text: str, listing: Listing) -> str:
    """The id of the only row with this name; raises ValueError if there are none or several."""
    answer = call("GET", "/v1/search", query={"q": text, "types": one.types})
    found = answer.data if answer.is_ok else []
    if len(found) == 1:
        return str(found[0]["id"])
    listing.found += [(each, listing.url(**{one.name: each["id"]})) for each in found]
    raise ValueError("Several have this name." if found else "Nothing has this name.")


def _is_csv() -> bool:
    return request.args.get("format") == "csv"


def _value(row: Json, name: str) -> Json:
    """A value of a row, or of a row in it: ``tenant.name``."""
    value = reduce(lambda part, key: part and part.get(key), name.split("."), row)
    if isinstance(value, list):
        return ", ".join(value)
    return value if value is None or isinstance(value, str) else dumps_text(value)


def _read_page(listing: Listing, path: str, values: dict[str, object], cursor: str) -> str:
    """Add one page to the listing; returns the cursor of the next page."""
    query = {"order": listing.order, "cursor": cursor or None, **values}
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
    listing.next_url = listing.url(cursor=further) if further else ""
    return further

"""Reading what several billing providers write alike. Text and numbers are bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from math import log
from urllib.parse import quote

from app.billing.providers.provider import PageOf
from app.billing.snapshots import Customer
from app.inbox.providers.payloads import MAX_ID, Document, Unreadable, Unwanted

MAX_COUNT = 2**63 - 1
MONTH = 365.25 / 12
INTERVALS = {"day": 1, "week": 7, "month": MONTH, "year": 12 * MONTH}
CYCLES = {
    "weekly": 7,
    "monthly": MONTH,
    "quarterly": 3 * MONTH,
    "semiannual": 6 * MONTH,
    "annual": 12 * MONTH,
}
"""The intervals of providers and our billing cycles, in days."""


def billing_cycle(document: Document, interval: str, count: str) -> str:
    """The cycle nearest to a number of days, weeks, months or years; ``""`` for another interval.

    ``interval`` and ``count`` are the names of the members that say it.
    """
    days = INTERVALS.get(word(document, interval), 0) * (whole(document, count) or 1)
    return min(CYCLES, key=lambda cycle: abs(log(CYCLES[cycle] / days))) if days else ""


def word(document: Document, *path: str) -> str:
    """The first 255 characters of a text; ``""`` for anything else."""
    return (document.text(*path) or "")[:MAX_ID]


def currency(document: Document, *path: str) -> str:
    return word(document, *path).upper()[:MAX_ID]


def whole(document: Document, *path: str) -> int | None:
    """A whole number from 0 to 2^63 - 1, or the same as text; None for anything else."""
    value = document.value(*path)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= MAX_COUNT else None


def total(parts: Iterable[tuple[int | None, int | None]]) -> int | None:
    """The sum of prices times quantities; None if one is unknown, if there is none, or from 2^63."""
    found, is_known = 0, False
    for price, count in parts:
        if price is None or count is None:
            return None
        found, is_known = found + price * count, True
    return found if is_known and found <= MAX_COUNT else None


def tenant(*metadata: Document) -> str:
    """The first ``tenant_id``, as text; ``""`` if there is none, or if it is longer than 255."""
    ids = (one.pairs().get("tenant_id", "").strip() for one in metadata)
    return next((found for found in ids if 0 < len(found) <= MAX_ID), "")


def customer(metadata: str) -> Callable[[Document], Customer]:
    """Reads a customer; ``metadata`` is the member that has the tenant."""
    return lambda found: Customer(found.identifier("id"), tenant(found.at(metadata)))


def reference(document: Document, *path: str) -> str:
    """The id of another object, which the document contains as a whole or by its id only."""
    found = document.at(*path)
    return found.identifier("id") if found.members() else document.identifier(*path)


def subscription_of(document: Document, *paths: tuple[str, ...]) -> str:
    """The first of these ids of a subscription; raises Unwanted if there is none."""
    for path in paths:
        if document.has(*path):
            return reference(document, *path)
    raise Unwanted("not about a subscription")


def earliest(moments: Iterable[datetime | None]) -> datetime | None:
    """The first of the known moments; None if there is none."""
    return min((moment for moment in moments if moment), default=None)


def listed(answer: Document, *path: str) -> list[Document]:
    """The objects of a list that has to be there: raises Unreadable for anything else."""
    value, found = answer.value(*path), answer.objects(*path)
    if not isinstance(value, list) or len(found) != len(value):
        raise Unreadable(f"{'.'.join(path)} is not a list of objects")
    return found


def pages(*has_more: str) -> Callable[[Document, str], PageOf]:
    """Reads a page of ``data`` whose cursor is its last id, with a flag for more pages."""

    def page(answer: Document, cursor: str) -> PageOf:
        objects, is_followed = listed(answer, "data"), answer.flag(*has_more)
        if is_followed is None or (is_followed and not objects):
            raise Unreadable("the page does not say whether there are more")
        return PageOf(objects, objects[-1].identifier("id") if is_followed else None)

    return page


def numbered_pages(objects: str, *last: str) -> Callable[[Document, str], PageOf]:
    """Reads a page whose cursor is its number; ``last`` is the member with that of the last one."""

    def page(answer: Document, cursor: str) -> PageOf:
        number, end = int(cursor or 1), whole(answer, *last)
        if end is None:
            raise Unreadable("the page does not say which is the last")
        return PageOf(listed(answer, objects), str(number + 1) if number < end else None)

    return page


def below(path: str) -> Callable[[str], str]:
    """Makes the path of one object."""
    return lambda id_: f"{path}/{quote(id_, safe='')}"


def paged(path: str, name: str) -> Callable[[str], str]:
    """Makes the path of one page; the query's parameter ``name`` is the cursor."""
    return lambda cursor: f"{path}&{name}={quote(cursor, safe='')}" if cursor else path

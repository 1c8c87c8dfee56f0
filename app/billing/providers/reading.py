"""Reading what several billing providers write alike. Text and numbers are bounded."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from math import log

from app.inbox.providers.payloads import MAX_ID, Document, Unreadable

MAX_COUNT = 2**63 - 1
_MONTH = 365.25 / 12
_INTERVALS = {"day": 1.0, "week": 7.0, "month": _MONTH, "year": 12 * _MONTH}
CYCLES = {
    "weekly": 7.0,
    "monthly": _MONTH,
    "quarterly": 3 * _MONTH,
    "semiannual": 6 * _MONTH,
    "annual": 12 * _MONTH,
}
"""Our billing cycles, in days."""


def billing_cycle(interval: str, count: int | None = 1) -> str:
    """The cycle nearest to ``count`` days, weeks, months or years; ``monthly`` if not known."""
    days = _INTERVALS.get(interval, _MONTH) * (count or 1)
    return min(CYCLES, key=lambda cycle: abs(log(CYCLES[cycle] / days)))


def word(document: Document, *path: str) -> str:
    """The first 255 characters of a text; ``""`` for anything else."""
    return (document.text(*path) or "")[:MAX_ID]


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


def tenant(metadata: Document) -> str:
    """``tenant_id`` of metadata, as text; ``""`` without one, or if it is longer than 255."""
    found = metadata.pairs().get("tenant_id", "").strip()
    return found if len(found) <= MAX_ID else ""


def reference(document: Document, *path: str) -> str:
    """The id of another object, which stands there alone or in the object itself."""
    found = document.at(*path)
    return found.identifier("id") if found.members() else document.identifier(*path)


def earliest(moments: Iterable[datetime | None]) -> datetime | None:
    """The first of the known moments; None without one."""
    return min((moment for moment in moments if moment), default=None)


def listed(answer: Document, *path: str) -> list[Document]:
    """The objects of a list that has to be there: raises Unreadable for anything else."""
    value, found = answer.value(*path), answer.objects(*path)
    if not isinstance(value, list) or len(found) != len(value):
        raise Unreadable(f"{'.'.join(path)} is not a list of objects")
    return found


def last_id(subscriptions: list[Document], has_more: bool | None) -> str | None:
    """The cursor of a list that goes on after its last id; None at its end."""
    if has_more is None or (has_more and not subscriptions):
        raise Unreadable("the page does not say whether there are more")
    return subscriptions[-1].identifier("id") if has_more else None

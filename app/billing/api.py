"""Reading the API of a billing provider, within limits of rate, time and size."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import NamedTuple

from app.billing.providers.provider import BillingProvider, PageOf
from app.billing.snapshots import Customer, Snapshot
from app.config import current_config
from app.core.clock import utcnow
from app.core.outgoing import OPERATOR, FetchFailed, retry_after
from app.inbox.providers.payloads import Document, Unreadable, parse_object

TIMEOUT = 10.0  # seconds of one request
MAX_BYTES = 5 * 1024 * 1024
MAX_PAGE = 25 * 1024 * 1024
MAX_MORE = 50  # requests that complete one subscription
MAX_KNOWN = 1000  # answers that complete several subscriptions, such as the price of each
NOT_FOUND = 404
UNREADABLE = 200
REFUSED = (400, NOT_FOUND, 410, 422)
PAUSE, LONGEST_PAUSE = 10.0, 300.0  # seconds after a 429: without Retry-After, and at most


class ReadFailed(Exception):
    """The provider gave no usable answer.

    ``status`` is the HTTP status, or None; 200 if the answer cannot be read. ``pause``: the provider
    takes no requests for so many seconds; 0 if it did not say so.
    """

    def __init__(self, reason: str, status: int | None = None, pause: float = 0.0) -> None:
        super().__init__(reason)
        self.status = status
        self.pause = pause

    @property
    def is_final(self) -> bool:
        """Whether this very request will hardly get another answer."""
        return self.status in (UNREADABLE, *REFUSED)


class Read(NamedTuple):
    """A subscription that the API answered. ``at``: our time just before the request."""

    at: datetime
    document: Document
    snapshot: Snapshot


# For this process, in monotonic seconds: when the next request to a provider may begin, and until
# when the provider takes none.
_lock = threading.Lock()
_next = defaultdict[str, float](float)
_paused = defaultdict[str, float](float)


def pause_of(provider: BillingProvider) -> float:
    """The seconds for which the provider takes no requests; 0 if it does."""
    return max(0.0, _paused[provider.name] - time.monotonic())


def get(
    provider: BillingProvider, path: str, *, max_bytes: int = MAX_BYTES
) -> tuple[datetime, Document]:
    """The JSON object at a path of the API, and our time just before the request.

    Waits for the provider's rate; raises ReadFailed.
    """
    _wait(provider)
    config, at = current_config(), utcnow()
    key: str = getattr(config, f"{provider.name}_api_key")
    address: str = getattr(config, f"{provider.name}_api_url") or provider.api_url
    headers = {"Accept": "application/json", **provider.headers(key)}
    try:
        url = address.rstrip("/") + path
        answer = OPERATOR.send("GET", url, headers=headers, timeout=TIMEOUT, max_bytes=max_bytes)
    except FetchFailed as fault:
        raise ReadFailed(f"{provider.title}: {fault}") from None
    if answer.status == 429:
        asked = retry_after(answer.headers.get("Retry-After", "")) or PAUSE
        _paused[provider.name] = time.monotonic() + min(asked, LONGEST_PAUSE)
        _check_pause(provider)
    if answer.status != 200:
        is_refused = answer.status in (401, 403, NOT_FOUND)
        hint = f": see {provider.name.upper()}_API_KEY" if is_refused else ""
        raise ReadFailed(f"{provider.title} answered {answer.status}{hint}", answer.status)
    if answer.is_cut:
        raise ReadFailed(f"{provider.title}'s answer is larger than {max_bytes} bytes", UNREADABLE)
    with _readable(provider):
        return at, parse_object(answer.body)


def read_subscription(provider: BillingProvider, subscription_id: str) -> Read:
    """The subscription as it is now; raises ReadFailed, also if the answer has another id."""
    at, answer = get(provider, provider.subscription_path(subscription_id))
    with _readable(provider):
        document = provider.subscription_in(answer)
    snapshot = complete(provider, document)
    if snapshot.subscription_id != subscription_id:
        raise ReadFailed(f"{provider.title} answered another subscription", UNREADABLE)
    return Read(at, document, snapshot)


def read_page(provider: BillingProvider, cursor: str) -> tuple[datetime, PageOf]:
    """A page of all subscriptions, and our time just before it; raises ReadFailed."""
    at, answer = get(provider, provider.page_path(cursor), max_bytes=MAX_PAGE)
    with _readable(provider):
        return at, provider.page(answer, cursor)


def complete(
    provider: BillingProvider, subscription: Document, known: dict[str, Document] | None = None
) -> Snapshot:
    """A subscription of an answer, with what its provider left out there; raises ReadFailed.

    ``known`` caches answers by path.
    """
    known = {} if known is None else known
    with _readable(provider):
        for _ in range(MAX_MORE):
            path = provider.more_path(subscription)
            if path is None:
                break
            if path not in known:
                if len(known) >= MAX_KNOWN:
                    known.clear()
                try:
                    _, known[path] = get(provider, path)
                except ReadFailed as fault:  # its status is not that of the subscription
                    status = UNREADABLE if fault.is_final else None
                    raise ReadFailed(str(fault), status, fault.pause) from None
            subscription = provider.with_more(subscription, known[path])
        return provider.snapshot(subscription)


def read_customer(provider: BillingProvider, customer_id: str) -> Customer:
    """The customer as it is now; without metadata if there is none such. Raises ReadFailed."""
    try:
        _, answer = get(provider, provider.customer_path(customer_id))
    except ReadFailed as fault:
        if fault.status != NOT_FOUND:
            raise
        return Customer(customer_id)
    with _readable(provider):
        return provider.customer(provider.customer_in(answer))


def _wait(provider: BillingProvider) -> None:
    """Sleep until the provider's rate allows a request."""
    with _lock:
        begins = max(_next[provider.name], time.monotonic())
        _next[provider.name] = begins + 1 / provider.reads_per_second
    time.sleep(max(0.0, begins - time.monotonic()))
    _check_pause(provider)


def _check_pause(provider: BillingProvider) -> None:
    if pause := pause_of(provider):
        raise ReadFailed(f"{provider.title} limits the rate of requests", 429, pause)


@contextmanager
def _readable(provider: BillingProvider) -> Iterator[None]:
    try:
        yield
    except Unreadable as fault:
        reason = f"{provider.title}'s answer cannot be read: {fault}"
        raise ReadFailed(reason, UNREADABLE) from None

"""The interface of a billing provider: pure functions that read its events and its API's answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from app.billing.snapshots import BillingEvent, Customer, Snapshot
from app.inbox.providers.payloads import Document


class PageOf(NamedTuple):
    """One page of the provider's subscriptions; ``cursor`` of the next page, None at the end."""

    subscriptions: Sequence[Document]
    cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BillingProvider:
    """How one billing provider writes its events, and how its API is read.

    ``event(body)`` reads a webhook. It raises Unwanted for an event that is not about the state of a
    subscription or about a customer, and Unreadable for one without its documented form.
    ``snapshot`` reads a subscription of the API or of a payload, and ``customer`` a customer.
    The paths are relative to the API's address: ``subscription_path(id)``, ``customer_path(id)``, and
    ``page_path(cursor)`` for a page of all subscriptions, the ended ones too, as large as the
    provider allows; the first page has the cursor "".
    ``more_path`` is None, or what is to be read to complete a subscription of the API, such as the
    items after the first ten; ``with_more`` adds that answer, and is asked again.
    ``subscription_in`` and ``customer_in`` find the object in the API's answer, and ``page`` the page
    that was asked for with a cursor. All raise Unreadable for an answer without its documented form.
    ``headers(api_key)`` are a request's headers. ``reads_per_second`` is the provider's default rate.
    ``event_types`` are those to select at the provider; empty if it sends all.
    """

    name: str
    title: str
    api_url: str
    headers: Callable[[str], Mapping[str, str]]
    reads_per_second: float
    event: Callable[[Document], BillingEvent]
    event_type: Callable[[Document], object] = lambda event: event.value("type")
    event_id: Callable[[Document], object]
    snapshot: Callable[[Document], Snapshot]
    customer: Callable[[Document], Customer]
    subscription_path: Callable[[str], str]
    customer_path: Callable[[str], str]
    page_path: Callable[[str], str]
    subscription_in: Callable[[Document], Document] = lambda answer: answer
    customer_in: Callable[[Document], Document] = lambda answer: answer
    more_path: Callable[[Document], str | None] = lambda subscription: None
    with_more: Callable[[Document, Document], Document] = lambda subscription, answer: subscription
    page: Callable[[Document, str], PageOf]
    event_types: tuple[str, ...] = ()
    has_trusted_payloads: bool = True
    """False for a provider that signs nothing: a payload is applied only after reading the object."""

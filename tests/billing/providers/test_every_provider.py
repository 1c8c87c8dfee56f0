"""What every provider's adapter does: the recorded events, the statuses, and rubbish of the API."""

from typing import Any

import pytest

from app.billing.providers import PROVIDERS
from app.billing.snapshots import BillingEvent
from app.inbox.providers.payloads import Document, Unreadable, Unwanted
from app.subscriptions.statuses import StatusClass
from tests.billing.providers import (
    test_chargebee,
    test_lemonsqueezy,
    test_paddle,
    test_polar,
    test_stripe,
)
from tests.billing.samples import document, event, sample_names

EVENTS: dict[str, dict[str, BillingEvent]] = {
    "stripe": test_stripe.EVENTS,
    "paddle": test_paddle.EVENTS,
    "chargebee": test_chargebee.EVENTS,
    "lemonsqueezy": test_lemonsqueezy.EVENTS,
    "polar": test_polar.EVENTS,
}
SAMPLES = [(provider, name) for provider in EVENTS for name in sample_names(provider)]
# A recorded event of an active subscription, and the way to its members.
ACTIVE = {
    "stripe": ("customer.subscription.updated--active", "data", "object"),
    "paddle": ("subscription.activated", "data"),
    "chargebee": ("subscription_activated", "content", "subscription"),
    "lemonsqueezy": ("subscription_updated--active", "data", "attributes"),
    "polar": ("subscription.active", "data"),
}
STATUSES = {
    "stripe": {
        "pending": "incomplete",
        "live": "trialing active",
        "past_due": "past_due unpaid",
        "paused": "paused",
        "ended": "canceled incomplete_expired",
        "unknown": "dormant",
    },
    "paddle": {
        "live": "active trialing",
        "past_due": "past_due",
        "paused": "paused",
        "ended": "canceled",
        "unknown": "deleted",
    },
    "chargebee": {
        "pending": "future",
        "live": "in_trial active non_renewing",
        "paused": "paused",
        "ended": "cancelled transferred",
        "unknown": "frozen",
    },
    "lemonsqueezy": {
        "live": "on_trial active cancelled",
        "past_due": "past_due unpaid",
        "paused": "paused",
        "ended": "expired",
        "unknown": "canceled",
    },
    "polar": {
        "pending": "incomplete",
        "live": "trialing active",
        "past_due": "past_due unpaid",
        "paused": "paused",
        "ended": "canceled incomplete_expired",
        "unknown": "frozen",
    },
}
CLASSES = [
    (provider, status, status_class)
    for provider, classes in STATUSES.items()
    for status_class, words in classes.items()
    for status in words.split()
]
# The id of the first event; the headers of a request; the path of the first page.
APIS: dict[str, tuple[str | None, dict[str, str], str]] = {
    "stripe": (
        "evt_1QtInvented000001",
        {"Authorization": "Bearer key", "Stripe-Version": "2026-07-29.dahlia"},
        "/v1/subscriptions?status=all&limit=100",
    ),
    "paddle": (
        "evt_01jd0invented0000000000001",
        {"Authorization": "Bearer key", "Paddle-Version": "1"},
        "/subscriptions?order_by=id%5BASC%5D&per_page=200",
    ),
    "chargebee": (
        "ev_AzqYbTInvented0001",
        {"Authorization": "Basic a2V5Og=="},
        "/subscriptions?limit=100&include_deleted=true",
    ),
    "lemonsqueezy": (
        None,
        {"Authorization": "Bearer key", "Accept": "application/vnd.api+json"},
        "/v1/subscriptions?page%5Bsize%5D=100",
    ),
    "polar": (
        None,
        {"Authorization": "Bearer key"},
        "/v1/subscriptions/?sorting=started_at&limit=100",
    ),
}
RUBBISH: list[Any] = [
    {},
    {"detail": "x"},
    {"message": "error"},
    {"errors": [{"status": "500"}]},
    {"data": []},
    {"data": [{"id": "sub_1"}]},
    {"data": None, "meta": {"page": {"lastPage": 1}}},
    {"data": ["x"], "meta": {"page": {"lastPage": 1}}},
    {"items": []},
    {"pagination": {"max_page": 3}},
    {"list": None},
    {"list": [1]},
]


@pytest.mark.parametrize(("provider", "name"), SAMPLES)
class TestSamples:
    def test_are_read_as_they_are_meant(self, provider: str, name: str) -> None:
        assert PROVIDERS[provider].event(event(document(provider, name))) == EVENTS[provider][name]

    def test_have_a_type_to_select(self, provider: str, name: str) -> None:
        types = PROVIDERS[provider].event_types
        found = PROVIDERS[provider].event_type(event(document(provider, name)))

        assert found == name.partition("--")[0]
        assert found in types or not types

    def test_of_another_type_are_unwanted(self, provider: str, name: str) -> None:
        body = document(provider, name)
        if provider == "lemonsqueezy":
            body["data"]["type"] = "products"
        else:
            body["event_type" if "event_type" in body else "type"] = "product.updated"

        with pytest.raises(Unwanted):
            PROVIDERS[provider].event(event(body))


@pytest.mark.parametrize(("provider", "status", "status_class"), CLASSES)
def test_statuses_have_a_class(provider: str, status: str, status_class: StatusClass) -> None:
    name, *way = ACTIVE[provider]
    body = members = document(provider, name)
    for key in way:
        members = members[key]
    members["status"] = status

    found = PROVIDERS[provider].event(event(body)).snapshot

    assert found
    assert (found.status, found.status_class) == (status, status_class)


@pytest.mark.parametrize("provider", APIS)
def test_events_have_the_senders_id_and_requests_what_the_api_asks_for(provider: str) -> None:
    event_id, headers, first_page = APIS[provider]
    chosen, first = (
        PROVIDERS[provider],
        next(name for name in EVENTS[provider] if "created" in name),
    )

    assert chosen.event_id(event(document(provider, first))) == event_id
    assert chosen.headers("key") == headers
    assert chosen.page_path("") == first_page


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("answer", RUBBISH, ids=str)
def test_rubbish_is_no_last_page(provider: str, answer: Any) -> None:
    with pytest.raises(Unreadable):
        PROVIDERS[provider].page(Document(answer), "")

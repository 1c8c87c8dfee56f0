"""Whatever JSON comes, reading it gives a value or one of two errors, and the values are bounded."""

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.billing.providers import PROVIDERS
from app.billing.providers.provider import BillingProvider
from app.billing.snapshots import BillingEvent, Customer, Snapshot
from app.inbox.providers.payloads import Document, Unreadable, Unwanted
from app.subscriptions.schemas import CYCLES
from tests.billing.samples import document, event, sample_names

SENDS_ALL = ("subscription_created", "subscription_ramp_applied", "payment_failed")
"""Types of a provider that sends all of them."""

NUMBERS = st.integers() | st.integers(min_value=2**63) | st.floats(allow_nan=False)
SCALARS = (
    st.none()
    | st.booleans()
    | NUMBERS
    | st.text()
    | st.text(min_size=300)
    | st.datetimes().map(str)
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of each value inside another."""
    pairs = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in pairs:
        yield (*path, key)
        yield from places(inner, (*path, key))


@st.composite
def almost_events(draw: Any, provider: str, name: str) -> Any:
    """A recorded event in which some values are others, or missing."""
    body = document(provider, name)
    for _ in range(draw(st.integers(1, 4))):
        *parents, key = draw(st.sampled_from(list(places(body))))
        holder = body
        for parent in parents:
            holder = holder[parent]
        if draw(st.booleans()) and isinstance(holder, dict):
            del holder[key]
        else:
            holder[key] = draw(JSON)
        if not list(places(body)):
            break
    return body


def read(function: Callable[[Document], Any], body: Any) -> Any:
    """What is read; None for the two errors."""
    try:
        return function(event(json.dumps(body).encode()))
    except (Unreadable, Unwanted):
        return None


def check(snapshot: Snapshot) -> None:
    for item in snapshot.items:
        assert all(len(text) <= 255 for text in (item.id, item.price, item.lookup_key))
        assert item.quantity is None or 0 <= item.quantity < 2**63
    texts = (snapshot.tenant, snapshot.cancel_reason, snapshot.status, snapshot.currency)
    assert all(len(text) <= 255 and "\x00" not in text for text in texts)
    assert 0 < len(snapshot.subscription_id) <= 255
    assert 0 < len(snapshot.customer_id) <= 255
    assert snapshot.amount is None or 0 <= snapshot.amount < 2**63
    assert snapshot.billing_cycle in ("", *CYCLES)
    moments = (snapshot.start_date, snapshot.trial_end, snapshot.current_period_end)
    moments += (snapshot.canceled_at, snapshot.changed_at)
    assert all(moment is None or isinstance(moment, datetime) for moment in moments)
    assert isinstance(snapshot.auto_renew, bool)
    assert isinstance(snapshot.cancel_at_period_end, bool)


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS.keys())
class TestAnyJson:
    @settings(max_examples=25, deadline=None)
    @given(st.data())
    def test_is_an_event_or_one_of_two_errors(
        self, provider: BillingProvider, data: st.DataObject
    ) -> None:
        body = data.draw(st.dictionaries(st.text(), JSON))
        kind = data.draw(st.sampled_from(provider.event_types or SENDS_ALL))

        read(provider.event, body)
        content = data.draw(JSON)
        written = {"type": kind, "event_type": kind, "content": {"subscription": content}}
        written |= {"data": {"type": "subscriptions", "id": "1", "attributes": content}}
        found = read(provider.event, {**body, **written})

        assert found is None or isinstance(found, BillingEvent)

    @settings(max_examples=25, deadline=None)
    @given(JSON)
    def test_is_an_answer_or_an_error(self, provider: BillingProvider, value: Any) -> None:
        body = {"has_more": True, "id": "x"}
        body |= dict.fromkeys(("data", "items", "pagination", "list", "next_offset", "meta"), value)

        for function in (provider.snapshot, provider.customer, provider.subscription_in):
            read(function, body)
        read(lambda answer: provider.page(answer, ""), body)
        read(lambda answer: provider.with_more(answer, answer), body)
        read(provider.more_path, body)

    def test_without_its_members_is_unreadable(self, provider: BillingProvider) -> None:
        with pytest.raises(Unreadable):
            provider.snapshot(Document({}))
        with pytest.raises(Unreadable):
            provider.customer(Document({}))


@pytest.mark.parametrize("provider", PROVIDERS)
class TestAlmostAnEvent:
    @settings(max_examples=100, deadline=None)
    @given(st.data())
    def test_is_read_within_bounds(self, provider: str, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sample_names(provider)))
        found = read(PROVIDERS[provider].event, data.draw(almost_events(provider, name)))

        if found is None:
            return
        assert (found.subscription_id is None) != (found.customer is None)
        if found.snapshot is not None:
            assert found.snapshot.subscription_id == found.subscription_id
            check(found.snapshot)
        if isinstance(found.customer, Customer):
            assert len(found.customer.tenant) <= 255
        assert isinstance(found.occurred_at, datetime)

"""The simulated providers write what ours read, in every state that a life leads to."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.billing.providers import chargebee
from app.billing.providers.provider import BillingProvider
from app.billing.snapshots import BillingEvent, Snapshot
from app.inbox.providers.payloads import parse_object
from app.subscriptions.statuses import StatusClass
from tests.billing.simulated.base import Simulated, Subscription
from tests.billing.simulated.chargebee import Chargebee
from tests.billing.simulated.lives import PAIRS, get, live, whole

SECRET = "whsec_dGhpcyBpcyBhIHNlY3JldCBmb3IgdGVzdHMgb25seQ=="
Pair = tuple[Simulated, BillingProvider]


@pytest.fixture(params=PAIRS)
def pair(request: pytest.FixtureRequest) -> Pair:
    """A provider, and how we read it."""
    simulated, provider = PAIRS[request.param]
    return simulated(secret=SECRET), provider


def read(account: Simulated, provider: BillingProvider, id_: str) -> Snapshot:
    return provider.snapshot(whole(account, provider, id_))


def listed(account: Simulated, provider: BillingProvider) -> list[list[Snapshot]]:
    """The subscriptions of each page."""
    found: list[list[Snapshot]] = []
    cursor: str | None = ""
    while cursor is not None:
        page = provider.page(get(account, provider.page_path(cursor)), cursor)
        found.append([provider.snapshot(one) for one in page.subscriptions])
        cursor = page.cursor
    return found


def check(account: Simulated, snapshot: Snapshot, subscription: Subscription) -> None:
    """All but the items, of which a payload can have the first ones only."""
    assert snapshot.subscription_id == subscription.id
    assert snapshot.customer_id == subscription.customer.id
    assert snapshot.status_class is subscription.status_class
    assert snapshot.tenant == (subscription.tenant if account.has_metadata else "")
    assert snapshot.currency == account.currency
    assert snapshot.billing_cycle == "monthly"
    assert snapshot.auto_renew is not (subscription.ends_with_period or subscription.has_ended)
    assert snapshot.collection_is_paused is subscription.collection_is_paused
    assert near(snapshot.start_date, subscription.created_at)
    assert near(snapshot.current_period_end, account.period_end(subscription))
    if not subscription.has_ended:
        assert snapshot.cancel_at_period_end is subscription.ends_with_period


def check_items(account: Simulated, snapshot: Snapshot, subscription: Subscription) -> None:
    wanted = [(account.price_id(line.price), line.quantity) for line in subscription.lines]
    assert sorted((item.price, item.quantity or 0) for item in snapshot.items) == sorted(
        (price, quantity or 0) for price, quantity in wanted
    )
    assert snapshot.amount == subscription.amount


def check_payload(
    account: Simulated, events: list[BillingEvent], found: Snapshot, subscription: Subscription
) -> None:
    """What the last event says; a price that stands apart is known by reading only."""
    tenants = {event.tenant or event.snapshot.tenant for event in events if event.snapshot}
    last = [event.snapshot for event in events if event.snapshot][-1]
    if not account.has_metadata:
        last = replace(last, amount=found.amount, billing_cycle=found.billing_cycle)
    check(account, last, subscription)
    assert tenants == {subscription.tenant}
    if len(subscription.lines) <= 10:
        assert last == found


def near(one: Any, other: Any) -> bool:
    """Stripe's times have no fractions."""
    return bool(one == other or abs(one - other) < timedelta(seconds=1))


class TestLives:
    @settings(max_examples=25, deadline=None)
    @given(st.data())
    @pytest.mark.parametrize("name", PAIRS)
    def test_are_read_as_they_are_lived(self, name: str, data: st.DataObject) -> None:
        simulated, provider = PAIRS[name]
        account = simulated(secret=SECRET)
        *_, subscription = live(data, account, tenant=data.draw(st.sampled_from(["", "acme"])))

        found = read(account, provider, subscription.id)

        check(account, found, subscription)
        check_items(account, found, subscription)
        told = account.take()
        types = set(provider.event_types)
        assert {event.kind for event in told} <= types or not types
        events = [provider.event(parse_object(event.body)) for event in told]
        if provider.has_trusted_payloads:
            check_payload(account, events, found, subscription)
        ((same,),) = listed(account, provider)
        assert same.subscription_id == subscription.id

    def test_of_customers_have_their_own_tenant(self, pair: Pair) -> None:
        account, provider = pair
        customer = account.create_customer(tenant="acme")
        account.create(customer=customer)

        account.change_customer(customer, tenant="other")
        found = get(account, provider.customer_path(customer.id))
        events = [provider.event(parse_object(event.body)) for event in account.take()]
        account.delete_customer(customer)

        tenants = [event.customer.tenant for event in events if event.customer]
        read_tenant = provider.customer(provider.customer_in(found)).tenant
        assert (tenants, read_tenant) == (
            (["acme", "other"], "other") if account.has_metadata else ([], "")
        )
        assert account.in_order[0].has_ended

    def test_of_a_deleted_subscription_of_chargebee_is_listed_only(self) -> None:
        account, provider = Chargebee(secret=SECRET), chargebee.PROVIDER
        subscription = account.create()
        account.delete(subscription)

        ((found,),) = listed(account, provider)
        event = provider.event(parse_object(account.take()[-1].body))

        path = account.api_path + provider.subscription_path(subscription.id)
        assert account.answer(path, {}) is None
        assert found.status_class is StatusClass.ENDED
        assert event.snapshot == found


class TestLists:
    @pytest.mark.parametrize("number", [0, 100, 401])
    def test_have_every_subscription_once(self, pair: Pair, number: int) -> None:
        account, provider = pair
        for _ in range(number):
            account.create(is_told=False)
        for subscription in account.in_order[::7]:
            account.apply("end", subscription, is_told=False)

        pages = listed(account, provider)

        found = [one.subscription_id for page in pages for one in page]
        assert sorted(found) == sorted(account.subscriptions)
        assert account.take() == []
        assert len(pages) == max(1, -(-number // (200 if account.name == "paddle" else 100)))

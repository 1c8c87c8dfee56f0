"""The simulated providers write what ours read, in every state that a life leads to."""

import base64
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook

from app.billing.providers import chargebee, lemonsqueezy, polar
from app.billing.providers.provider import BillingProvider
from app.billing.snapshots import BillingEvent, Snapshot
from app.inbox.providers.payloads import Document, parse_object
from app.inbox.signatures.schemes import parse_schemes, verify
from app.subscriptions.statuses import StatusClass
from tests.billing.simulated.base import Line, Simulated, Subscription
from tests.billing.simulated.chargebee import Chargebee
from tests.billing.simulated.lemonsqueezy import LemonSqueezy
from tests.billing.simulated.lives import PAIRS, live
from tests.billing.simulated.polar import Polar
from tests.billing.simulated.stripe import Stripe

SECRET = "whsec_dGhpcyBpcyBhIHNlY3JldCBmb3IgdGVzdHMgb25seQ=="
Pair = tuple[Simulated, BillingProvider]


@pytest.fixture(params=PAIRS)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """A provider that answers, and how we read it."""
    simulated, provider = PAIRS[request.param]
    with simulated(secret=SECRET).serving() as account:
        yield account, provider


def get(account: Simulated, provider: BillingProvider, path: str) -> Document:
    answer = requests.get(account.url + path, headers=provider.headers(account.api_key), timeout=9)
    assert answer.status_code == 200, answer.text
    return parse_object(answer.content)


def read(account: Simulated, provider: BillingProvider, id_: str) -> Snapshot:
    """The whole subscription by the API."""
    found = provider.subscription_in(get(account, provider, provider.subscription_path(id_)))
    while path := provider.more_path(found):
        found = provider.with_more(found, get(account, provider, path))
    return provider.snapshot(found)


def listed(account: Simulated, provider: BillingProvider) -> list[Snapshot]:
    found: list[Document] = []
    cursor: str | None = ""
    while cursor is not None:
        page = provider.page(get(account, provider, provider.page_path(cursor)), cursor)
        found.extend(page.subscriptions)
        cursor = page.cursor
    return [provider.snapshot(one) for one in found]


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
    @settings(max_examples=60, deadline=None)
    @given(st.data())
    @pytest.mark.parametrize("name", PAIRS)
    def test_are_read_as_they_are_lived(self, name: str, data: st.DataObject) -> None:
        simulated, provider = PAIRS[name]
        with simulated(secret=SECRET).serving() as account:
            *_, subscription = live(data, account, tenant=data.draw(st.sampled_from(["", "acme"])))

            found = read(account, provider, subscription.id)

            check(account, found, subscription)
            check_items(account, found, subscription)
            told = account.take()
            assert {event.kind for event in told} <= set(provider.event_types) or (
                not provider.event_types
            )
            events = [provider.event(parse_object(event.body)) for event in told]
            if provider.has_trusted_payloads:
                check_payload(account, events, found, subscription)
            assert [one.subscription_id for one in listed(account, provider)] == [subscription.id]

    def test_of_customers_have_their_own_tenant(self, pair: Pair) -> None:
        account, provider = pair
        customer = account.create_customer(tenant="acme")
        account.create(customer=customer)

        account.change_customer(customer, tenant="other")
        found = get(account, provider, provider.customer_path(customer.id))
        events = [provider.event(parse_object(event.body)) for event in account.take()]
        account.delete_customer(customer)

        tenants = [event.customer.tenant for event in events if event.customer]
        read_tenant = provider.customer(provider.customer_in(found)).tenant
        assert (tenants, read_tenant) == (
            (["acme", "other"], "other") if account.has_metadata else ([], "")
        )
        assert account.in_order[0].has_ended

    def test_of_polars_customers_can_be_found_by_their_external_id(self) -> None:
        account = Polar(secret=SECRET)
        account.has_external_ids = True
        account.create(customer=account.create_customer(tenant="acme"))

        event = polar.PROVIDER.event(parse_object(account.take()[-1].body))

        assert event.snapshot
        assert event.snapshot.tenant == "acme"

    def test_of_a_deleted_subscription_of_chargebee_is_listed_only(self) -> None:
        with Chargebee(secret=SECRET).serving() as account:
            subscription = account.create()
            account.delete(subscription)

            (found,) = listed(account, chargebee.PROVIDER)
            event = chargebee.PROVIDER.event(parse_object(account.take()[-1].body))

            path = account.url + chargebee.PROVIDER.subscription_path(subscription.id)
            headers = chargebee.PROVIDER.headers(account.api_key)
            assert requests.get(path, headers=headers, timeout=9).status_code == 404
            assert found.status_class is StatusClass.ENDED
            assert event.snapshot == found

    def test_of_lemon_squeezy_may_have_no_item_in_the_trial(self) -> None:
        account = LemonSqueezy(secret=SECRET)
        account.has_item_in_trial = False
        with account.serving():
            subscription = account.create(Line("team", 12), trial=timedelta(days=14))

            before = read(account, lemonsqueezy.PROVIDER, subscription.id)
            account.advance(timedelta(days=14))
            after = read(account, lemonsqueezy.PROVIDER, subscription.id)

        assert [item.quantity for item in (*before.items, *after.items)] == [None, 12]
        assert (before.amount, after.amount) == (None, 12_000)
        assert before.items[0].price == after.items[0].price


class TestLists:
    @pytest.mark.parametrize("number", [0, 100, 401])
    def test_have_every_subscription_once(self, pair: Pair, number: int) -> None:
        account, provider = pair
        for _ in range(number):
            account.create(is_told=False)
        for subscription in account.in_order[::7]:
            account.apply("end", subscription, is_told=False)

        found = [one.subscription_id for one in listed(account, provider)]

        assert sorted(found) == sorted(account.subscriptions)
        assert account.take() == []
        assert len(account.api.requests) == max(
            1, -(-number // (200 if account.name == "paddle" else 100))
        )


class TestSignatures:
    def test_of_stripe_are_believed(self) -> None:
        account = Stripe(secret=SECRET)
        account.create()
        event = account.take()[-1]

        headers = account.headers(event, 1793520000).items()

        verify(parse_schemes(f"stripe:{SECRET}"), headers, event.body, 1793520000)

    def test_of_polar_are_believed_by_the_official_library(self) -> None:
        account = Polar(secret=SECRET)
        account.create()
        event = account.take()[-1]

        headers = account.headers(event)

        assert headers["webhook-id"] == event.id
        Webhook(base64.b64encode(SECRET.encode()).decode()).verify(event.body, headers)

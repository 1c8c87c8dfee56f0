"""The mirror equals the provider after random lives, in whatever order events arrive.

``BILLING_LIVES=500`` lets each test live so many lives.
"""

import itertools
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.billing import customers, reconcile
from app.billing import mirror as mirrors
from app.billing.providers.provider import BillingProvider
from app.billing.snapshots import BillingEvent
from app.core.actors import SYSTEM_CLI
from app.core.clock import utcnow
from app.core.db import tenancy
from app.inbox.providers.payloads import parse_object
from tests import database
from tests.billing.reading import service
from tests.billing.simulated.base import START, Event, Simulated, Subscription
from tests.billing.simulated.lives import PAIRS, live, whole
from tests.billing.support import Mirror, stored
from tests.factories import create_tenant

FIRST = itertools.count(1_000, 1_000)
"""The numbers of the first ids of accounts, which share a database."""
TRUSTED = [name for name, (_, provider) in PAIRS.items() if provider.has_trusted_payloads]
FEW = int(os.environ.get("BILLING_LIVES", "8"))
FIXTURES = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
EACH = settings(max_examples=FEW, deadline=None, suppress_health_check=FIXTURES)


def random_order(data: st.DataObject, found: list[Any]) -> list[Any]:
    """All of them, some twice."""
    dice = random.Random(data.draw(st.integers(0, 2**32)))
    both = [*found, *dice.sample(found, len(found) // 2)]
    dice.shuffle(both)
    return both


def read_event(provider: BillingProvider, event: Event) -> BillingEvent:
    return provider.event(parse_object(event.body))


def check(account: Simulated, subscription: Subscription) -> None:
    row = stored(bp_subscription_id=subscription.id)
    assert row.status_class == subscription.status_class
    assert row.auto_renew is not (subscription.ends_with_period or subscription.has_ended)
    assert row.collection_is_paused is subscription.collection_is_paused
    end = account.period_end(subscription)
    assert row.current_period_end == end or (
        abs(row.current_period_end - end) < timedelta(seconds=1)  # Stripe's have no fractions
    )
    wanted = [(account.price_id(line.price), line.quantity) for line in subscription.lines]
    items = [(item["price"], item["quantity"]) for item in row.items]
    assert sorted(items, key=str) == sorted(wanted, key=str)


@pytest.mark.usefixtures("presets")
class TestLives:
    @pytest.mark.parametrize("name", PAIRS)
    @EACH
    @given(st.data())
    def test_are_mirrored_by_reads_of_any_moment(
        self, mirror: Mirror, name: str, data: st.DataObject
    ) -> None:
        simulated, provider = PAIRS[name]
        account, tenant = simulated(first=next(FIRST)), create_tenant()
        reads = [
            (
                account.now,
                provider.snapshot(whole(account, provider, subscription.id)),
                subscription,
            )
            for subscription in live(data, account, tenant=tenant.slug)
        ]

        for at, snapshot, _ in random_order(data, reads):
            apply(mirror, name, snapshot, at=at, is_read=True, tenant=tenant.slug)

        check(account, reads[-1][2])

    @pytest.mark.parametrize("name", TRUSTED)
    @EACH
    @given(st.data())
    def test_are_mirrored_by_payloads_in_any_order(
        self, mirror: Mirror, name: str, data: st.DataObject
    ) -> None:
        """Changes of one second have no order at Stripe, so they are a second apart here."""
        simulated, provider = PAIRS[name]
        account, tenant = simulated(first=next(FIRST)), create_tenant()
        account.most_lines = min(account.most_lines, 10)
        for _ in live(data, account, tenant=tenant.slug):
            account.advance(timedelta(seconds=1))

        for event in random_order(data, account.take()):
            found = read_event(provider, event)
            if found.snapshot:
                apply(mirror, name, found.snapshot, at=found.occurred_at, tenant=found.tenant)

        check(account, account.in_order[0])


@pytest.mark.usefixtures("presets")
class TestComparisons:
    @pytest.fixture(params=PAIRS)
    def account(self, app: Flask, request: pytest.FixtureRequest) -> Iterator[Simulated]:
        with PAIRS[request.param][0](secret="user:password").serving() as account:
            yield account

    @pytest.fixture
    def reading(self, environment: dict[str, str], account: Simulated) -> Iterator[Flask]:
        with service(environment, account) as app:
            yield app

    @EACH
    @given(st.data())
    def test_repair_all_that_lost_events_have_left(
        self, reading: Flask, account: Simulated, mirror: Mirror, data: st.DataObject
    ) -> None:
        """Of the changes, some are applied by reading, some by their payload, and some are lost."""
        database.execute("DELETE FROM subscriptions")
        account.in_order.clear()
        account.subscriptions.clear()
        account.take()  # the events of an example that was given up
        account.now = data.draw(st.sampled_from([START, START + timedelta(days=365)]))
        provider = replace(PAIRS[account.name][1], reads_per_second=10_000)
        tenant = create_tenant()
        for subscription in live(data, account, tenant=tenant.slug):
            said = {"tenant": tenant.slug, "at": account.now}
            match data.draw(st.sampled_from(["lost", "read", "applied"])):
                case "read":
                    found = provider.snapshot(whole(account, provider, subscription.id))
                    apply(mirror, account.name, found, is_read=True, **said | {"at": utcnow()})
                case "applied" if provider.has_trusted_payloads:
                    for event in random_order(data, account.take()):
                        found = read_event(provider, event).snapshot
                        if found:
                            apply(mirror, account.name, found, **said)
            account.take()
        if not account.has_metadata:
            mapped = (account.name, subscription.customer.id, tenant.id)
            mirror.run(lambda: customers.set_tenant(*mapped, actor=SYSTEM_CLI))

        self.compare(reading, provider)

        check(account, subscription)
        again = self.compare(reading, provider)
        assert again == {"compared": 1, "repaired": 0}

    @staticmethod
    def compare(app: Flask, provider: BillingProvider) -> dict[str, int]:
        with app.app_context():
            with tenancy.platform_transaction():
                reconcile.begin(provider)
            *_, state = reconcile.work(provider, 600)
        assert not state.is_running
        return state.counts


def apply(
    mirror: Mirror, provider: str, snapshot: Any, *, is_read: bool = False, **values: Any
) -> None:
    mirror.run(lambda: mirrors.apply(provider, snapshot, is_read=is_read, **values))

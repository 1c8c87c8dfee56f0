"""The mirror equals the provider after random lives, in whatever order events arrive."""

import itertools
import random
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.billing import mirror as mirrors
from app.billing.providers.provider import BillingProvider
from app.billing.snapshots import BillingEvent
from app.inbox.providers.payloads import Document, parse_object
from tests.billing.simulated.base import Event, Simulated, Subscription
from tests.billing.simulated.lives import PAIRS, live
from tests.billing.support import Mirror, stored
from tests.factories import create_tenant

FIRST = itertools.count(1_000, 1_000)
"""The numbers of the first ids of accounts, which share a database."""
TRUSTED = [name for name, (_, provider) in PAIRS.items() if provider.has_trusted_payloads]
EACH = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def random_order(data: st.DataObject, found: list[Any]) -> list[Any]:
    """All of them, some twice."""
    dice = random.Random(data.draw(st.integers(0, 2**32)))
    both = [*found, *dice.sample(found, len(found) // 2)]
    dice.shuffle(both)
    return both


def read_event(provider: BillingProvider, event: Event) -> BillingEvent:
    return provider.event(parse_object(event.body))


def whole(account: Simulated, provider: BillingProvider, id_: str) -> Document:
    """The subscription as the API answers it, with what more has to be read."""
    found = provider.subscription_in(get(account, provider.subscription_path(id_)))
    while path := provider.more_path(found):
        found = provider.with_more(found, get(account, path))
    return found


def get(account: Simulated, path: str) -> Document:
    url, _, query = path.partition("?")
    return Document(account.answer(account.api_path + url, dict(parse_qsl(query))))


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


def apply(
    mirror: Mirror, provider: str, snapshot: Any, *, is_read: bool = False, **values: Any
) -> None:
    mirror.run(lambda: mirrors.apply(provider, snapshot, is_read=is_read, **values))

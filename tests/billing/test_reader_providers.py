"""What is special in reading Chargebee and Lemon Squeezy."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from flask import Flask

from app.inbox import processing
from app.subscriptions.models import Subscription
from tests.billing.reading import post, post_all, reader_of, service, wait_for
from tests.billing.simulated.base import Line
from tests.billing.simulated.chargebee import Chargebee
from tests.billing.simulated.lemonsqueezy import LemonSqueezy
from tests.database import row, rows


@pytest.fixture
def chargebee(app: Flask) -> Iterator[Chargebee]:
    with Chargebee(secret="controlplane:long:password").serving() as account:
        yield account


@pytest.fixture
def lemonsqueezy(app: Flask) -> Iterator[LemonSqueezy]:
    with LemonSqueezy(secret="a-long-random-secret").serving() as account:
        yield account


class TestChargebee:
    @pytest.fixture
    def reading(self, environment, chargebee) -> Iterator[Flask]:
        with service(environment, chargebee) as app:
            yield app

    def test_dues_are_read_because_of_a_payment(self, reading, chargebee, tenant):
        subscription = chargebee.create(
            Line("team", 12, 4900), Line("calls", None), tenant=tenant.slug
        )
        chargebee.apply("fail", subscription)
        events = post_all(reading, chargebee)

        with reader_of(reading):
            found = {wait_for(event_id).status for event_id in events}

        mirrored = row(Subscription)
        assert found == {"succeeded"}
        assert (mirrored.bp_status, mirrored.status_class) == ("active", "past_due")
        assert [item["quantity"] for item in mirrored.items] == [12, None]
        assert mirrored.currency == "EUR"

    def test_a_deleted_subscription_ends(self, reading, chargebee, tenant):
        subscription = chargebee.create(tenant=tenant.slug)
        created = post_all(reading, chargebee)
        with reader_of(reading):
            for event_id in created:
                wait_for(event_id)
            chargebee.delete(subscription)
            deleted = chargebee.take()[-1]

            event = wait_for(post(reading, chargebee, deleted))

        assert event.status == "succeeded"
        assert row(Subscription).status_class == "ended"

    def test_a_payload_makes_no_subscription_that_is_not_found(
        self, reading, chargebee, tenant, monkeypatch
    ):
        monkeypatch.setattr(processing, "RETRY_DELAYS", (0.1,) * 4)
        chargebee.delete(chargebee.create(tenant=tenant.slug))
        deleted = chargebee.take()[-1]

        with reader_of(reading):
            event = wait_for(post(reading, chargebee, deleted))

        assert event.status == "ignored"
        assert rows(Subscription) == []


class TestLemonSqueezy:
    def test_the_tenant_is_that_of_the_event_and_the_price_is_read(
        self, environment, lemonsqueezy, tenant
    ):
        subscription = lemonsqueezy.create(
            Line("team", 12, 4900), tenant=tenant.slug, trial=timedelta(days=14)
        )
        lemonsqueezy.apply("cancel_at_period_end", subscription)
        with service(environment, lemonsqueezy) as reading:
            events = post_all(reading, lemonsqueezy)
            with reader_of(reading):
                found = {wait_for(event_id).status for event_id in events}

        mirrored = row(Subscription)
        assert found == {"succeeded"}
        assert (mirrored.tenant_id, mirrored.bp_status) == (tenant.id, "cancelled")
        assert (mirrored.status_class, mirrored.auto_renew) == ("live", False)
        assert (mirrored.per_cycle_billing_amount, mirrored.billing_cycle) == (58_800, "monthly")
        assert mirrored.items[0]["quantity"] == 12

"""What is special in reading Chargebee."""

from collections.abc import Iterator

import pytest
from flask import Flask

from app.inbox import processing
from app.subscriptions.models import Subscription
from tests.billing.reading import post, post_all, reader_of, service, wait_for
from tests.billing.simulated.chargebee import Chargebee
from tests.database import row, rows


@pytest.fixture
def chargebee(app: Flask) -> Iterator[Chargebee]:
    with Chargebee(secret="controlplane:long:password").serving() as account:
        yield account


class TestChargebee:
    @pytest.fixture
    def reading(self, environment, chargebee) -> Iterator[Flask]:
        with service(environment, chargebee) as app:
            yield app

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

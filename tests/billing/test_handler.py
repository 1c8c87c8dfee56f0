"""Applying events without an API key: their payloads, as far as these can be trusted."""

from typing import Any

import pytest

from app.core.actors import SYSTEM_CLI
from app.inbox import service
from app.inbox.models import WebhookEvent
from app.inbox.providers import RECEIVERS
from app.subscriptions.models import Subscription
from app.subscriptions.service import update_subscription as update
from tests.billing.samples import document
from tests.database import platform_transaction, row, rows
from tests.factories import create_subscription
from tests.inbox.sending import SECRETS, Sender, event_row, work_off


@pytest.fixture
def deliver(sender: Sender):
    """Post a sample, or a body, to its provider's receiver; its row, once a worker has run."""
    receivers = [RECEIVERS[name] for name in ("stripe", "paddle", "chargebee")]
    sender.configure({one: f"{one.preset}:{SECRETS[one.preset]}" for one in receivers})

    def post(provider: str, body: Any) -> WebhookEvent:
        sent = document(provider, body) if isinstance(body, str) else body
        return sender.deliver(provider, sent, receiver=RECEIVERS[provider])

    return post


def of_tenant(tenant, name: str = "customer.subscription.updated--active") -> Any:
    """A sample of Stripe whose metadata names the tenant."""
    body = document("stripe", name)
    body["data"]["object"]["metadata"] = {"tenant_id": str(tenant.id)}
    return body


class TestPayloads:
    def test_are_applied(self, deliver, tenant):
        event = deliver("stripe", of_tenant(tenant))

        assert (event.status, event.detail) == ("succeeded", "")
        mirrored = row(Subscription)
        assert (mirrored.tenant_id, mirrored.bp_status) == (tenant.id, "active")

    def test_that_are_older_than_what_is_known_are_ignored(self, deliver, tenant):
        deliver("stripe", of_tenant(tenant, "customer.subscription.updated--past_due"))

        event = deliver("stripe", of_tenant(tenant))

        assert event.status == "ignored"
        assert event.detail.startswith("stale")
        assert row(Subscription).bp_status == "past_due"

    def test_that_are_replayed_are_applied_though_they_are_older(self, app, deliver, tenant):
        deliver("stripe", of_tenant(tenant, "customer.subscription.updated--past_due"))
        event = deliver("stripe", of_tenant(tenant))
        with platform_transaction():
            service.replay(event.id, actor=SYSTEM_CLI)

        work_off(app)

        assert event_row(event.id).status == "succeeded"
        assert row(Subscription).bp_status == "active"

    def test_of_no_known_tenant_wait_with_their_payload(self, deliver):
        event = deliver("paddle", "subscription.created")

        assert (event.status, event.processed_at) == ("waiting_tenant", None)
        assert event.body is not None
        assert rows(Subscription) == []

    def test_with_the_id_of_another_providers_subscription_fail_until_that_has_ended(
        self, app, deliver, tenant
    ):
        body = of_tenant(tenant)
        id_ = body["data"]["object"]["id"]
        other = create_subscription(tenant, bp_subscription_id=id_, bp_provider="paddle")

        event = deliver("stripe", body)

        assert (event.status, event.attempts) == ("failed", 1)
        assert event.detail.startswith("the tenant has a subscription of another provider")
        assert row(Subscription) == other
        with platform_transaction():
            update(other.id, {"bp_status": "canceled"}, force=True, actor=SYSTEM_CLI)
            service.replay(event.id, actor=SYSTEM_CLI)
        work_off(app)
        assert (row(Subscription).id, row(Subscription).bp_provider) == (other.id, "stripe")

    def test_of_the_test_mode_are_ignored(self, deliver, tenant):
        event = deliver("stripe", {**of_tenant(tenant), "livemode": False})

        assert (event.status, event.detail) == ("ignored", "test mode")
        assert rows(Subscription) == []

    def test_without_a_subscription_say_that_it_would_have_to_be_read(self, deliver):
        invoice = {"id": "in_1", "object": "invoice", "subscription": "sub_1"}
        event = deliver(
            "stripe",
            {
                "id": "evt_1",
                "type": "invoice.payment_failed",
                "created": 1794729600,
                "data": {"object": invoice},
            },
        )

        assert event.status == "ignored"
        assert event.detail == "its subscription is read only with STRIPE_API_KEY"

    def test_that_nothing_signs_fail(self, deliver):
        event = deliver("chargebee", "subscription_created")

        assert (event.status, event.attempts) == ("failed", 1)
        assert event.detail == "Chargebee signs nothing: set CHARGEBEE_API_KEY to read it"

    def test_of_another_kind_are_ignored(self, deliver):
        event = deliver("stripe", {"id": "evt_1", "type": "product.created", "created": 1})

        assert event.status == "ignored"

    @pytest.mark.parametrize("data", [None, [], {"object": None}, {"object": {"id": 5}}])
    def test_that_cannot_be_read_fail(self, deliver, data):
        body = {"id": "evt_1", "type": "customer.subscription.updated", "created": 1, "data": data}

        event = deliver("stripe", body)

        assert (event.status, event.attempts) == ("failed", 1)

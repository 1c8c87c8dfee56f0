"""Attacks: bodies, orders and neighbours that must not cost a paying customer anything."""

import pytest

from app import create_app
from app.billing import jobs
from app.billing import mirror as rules
from app.billing.mirror import Outcome
from app.billing.snapshots import BillingEvent
from app.extensions import db
from app.flags.models import FeatureOverride
from app.plans.models import PlanAssignment, PlanPrice
from app.tenants.models import Tenant
from tests import database
from tests.billing.reading import post_all, reader_of, service, wait_for
from tests.billing.simulated.stripe import Stripe
from tests.billing.support import PAST_DUE, ended, map_price, seated, snapshot, stored
from tests.conftest import Api
from tests.factories import (
    create_limits,
    create_subscription,
    create_tenant,
    limit_flag,
    platform_token,
    save,
)
from tests.inbox.sending import event_row

PATH = "/v1/billing/subscriptions"


@pytest.fixture
def seats(app):
    """The presets ``free`` and ``growth`` with a limit of seats, and a price of ``growth``."""
    for name, most in (("free", 1), ("growth", 3)):
        create_limits(name, limit_flag("seats", most))
    map_price("price_growth", "growth", limit_key="seats")


class TestTime:
    @pytest.mark.parametrize("body", [{}, {"billing_city": "Springfield"}])
    def test_of_a_client_does_not_hide_the_providers_events(
        self, environment, mirror, tenant, body
    ):
        mirror.apply(snapshot(tenant=tenant.slug))
        made = create_app({**environment, "WEBHOOK_SECRETS_STRIPE": "whsec_secret"})

        answer = Api(made).patch(
            f"{PATH}/{stored().id}",
            token=platform_token(),
            json=body,
            headers={"X-Source-Timestamp": "2999-01-01T00:00:00Z"},
        )

        with made.app_context():
            db.engine.dispose()
        assert (answer.status_code, answer.get_json()["code"]) == (409, "managed_by_provider")
        assert mirror.apply(snapshot(**PAST_DUE), 1) is Outcome.APPLIED


class TestLimits:
    def test_of_another_subscription_of_the_tenant_apply_after_the_end_of_one(
        self, mirror, tenant, seats
    ):
        mirror.apply(seated(5, tenant=tenant.slug))
        mirror.apply(seated(10, tenant=tenant.slug, subscription_id="sub_2"), 1)
        mirror.apply(ended(subscription_id="sub_2"), 2)

        override = database.row(FeatureOverride)
        assert (override.flag_value, override.reason) == (5, "stripe sub_1")

        mirror.apply(ended(), 3)
        assert database.rows(FeatureOverride) == []

    @pytest.mark.parametrize(
        ("quantity", "limit"), [(0, 0), (10**18, 10**15), (None, None), (2**63 - 1, 10**15)]
    )
    def test_take_any_quantity(self, mirror, tenant, seats, quantity, limit):
        assert mirror.apply(seated(quantity, tenant=tenant.slug)) is Outcome.APPLIED
        assert [one.flag_value for one in database.rows(FeatureOverride)] == (
            [] if limit is None else [limit]
        )


class TestTheSameIdAtTwoTenants:
    @pytest.fixture
    def twins(self, tenant):
        """Rows of two tenants with the id, which no provider keeps current."""
        for one in (create_tenant(), tenant):
            create_subscription(one, bp_subscription_id="sub_1")

    def test_the_customer_is_read_because_it_decides(self, mirror, twins):
        assert mirror.run(lambda: rules.needs_customer("stripe", snapshot()))

    def test_the_event_is_not_applied_again_and_again(self, mirror, twins):
        told = BillingEvent(
            subscription_id="sub_1", snapshot=snapshot(), occurred_at=snapshot().start_date
        )

        assert mirror.apply(snapshot()) is Outcome.WAITING
        assert not mirror.run(lambda: rules.has_tenant("stripe", told))


class TestATenantThatComesLate:
    def test_and_is_only_named_by_the_customer_gets_what_was_paid(self, environment, app):
        with (
            Stripe(secret="whsec_c2VjcmV0").serving() as stripe,
            service(environment, stripe) as reading,
        ):
            customer = stripe.create_customer(tenant="late", is_told=False)
            stripe.create(customer=customer)
            (event_id,) = post_all(reading, stripe)
            with reader_of(reading):
                waiting = wait_for(event_id, status="waiting_tenant")
                with reading.app_context():
                    jobs.apply_waiting_events()
                still = event_row(event_id).status
                late = create_tenant(slug="late")
                with reading.app_context():
                    jobs.apply_waiting_events()
                event = wait_for(event_id, status="succeeded")

        assert (waiting.status, waiting.detail) == (
            "waiting_tenant",
            "waits for its tenant: late",
        )
        assert still == "waiting_tenant"
        assert event.status == "succeeded"
        assert stored().tenant_id == late.id


class TestAChangedPrice:
    def test_reaches_those_behind_others_that_cannot_follow(self, app, mirror, monkeypatch, seats):
        """An assigned plan without the limit keeps a subscription from it."""
        monkeypatch.setattr(jobs, "BATCH", 2)
        create_limits("bare", limit_flag("calls", 1))
        tenants = [create_tenant() for _ in range(5)]
        for number, tenant in enumerate(tenants):
            mirror.apply(
                seated(5, subscription_id=f"sub_{number}", tenant=str(tenant.id)), provider="paddle"
            )
        map_price("price_growth", "growth", provider="paddle", limit_key="seats", is_pending=True)
        for tenant in tenants[:3]:
            assigned = {"plan_name": "bare", "next_plan_name": "free", "until": None}
            save(PlanAssignment, tenant_id=tenant.id, reason="", created_by="x", **assigned)

        with app.app_context():
            jobs.follow_prices()

        assert {database.row(Tenant, id=one.id).plan_name for one in tenants[3:]} == {"growth"}
        assert len(database.rows(FeatureOverride)) == 2
        assert database.row(PlanPrice, provider="paddle").is_pending is False

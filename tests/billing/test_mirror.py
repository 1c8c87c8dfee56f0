"""What becomes of a snapshot: order, ties, taking over, plans, and what a provider does not say."""

from dataclasses import replace

import pytest

from app.audit.models import AuditEvent
from app.billing import mirror as rules
from app.billing.mirror import Outcome
from app.billing.snapshots import Item
from app.core.actors import SYSTEM_CLI
from app.plans.following import reconcile
from app.subscriptions.models import Subscription
from app.subscriptions.statuses import StatusClass
from app.tenants.models import Tenant
from tests import database
from tests.billing.support import PAST_DUE, at, ended, map_price, snapshot, stored
from tests.concurrency import at_once
from tests.database import platform_transaction
from tests.factories import create_subscription, create_tenant, platform_token

PATH = "/v1/billing/subscriptions"
PAUSED = {"status": "paused", "status_class": StatusClass.PAUSED}
PENDING = {"status": "incomplete", "status_class": StatusClass.PENDING}


def plan_of(tenant):
    return database.row(Tenant, id=tenant.id).plan_name


def actions(tenant):
    return [row.action for row in database.rows(AuditEvent, tenant_id=tenant.id)]


class TestANewSubscription:
    def test_gives_the_tenant_the_plan_and_is_shown(self, api, mirror, presets, tenant, named):
        map_price("price_growth", "growth")
        one = snapshot(trial_end=at(60), status="trialing", **named)

        outcome = mirror.apply(one)

        row = stored()
        path = f"{PATH}/{row.id}"
        shown = api.get(f"{path}?include=billing,items,status_class", token=platform_token())
        read = shown.get_json()["data"]
        assert outcome is Outcome.APPLIED
        assert plan_of(tenant) == "growth"
        assert (read["plan_name"], read["bp_plan_id"]) == ("growth", "price_growth")
        assert (read["bp_status"], read["status_class"]) == ("trialing", "live")
        assert (read["is_free_trial"], read["per_cycle_billing_amount"]) == (True, 4900)
        assert read["billing"] == {
            "bp_provider": "stripe",
            "currency": "EUR",
            "trial_end": "2026-03-01T13:00:00Z",
            "current_period_end": "2026-03-31T12:00:00Z",
            "collection_is_paused": False,
            "read_at": None,
        }
        item = {"id": "si_1", "price": "price_growth", "lookup_key": "", "quantity": 1}
        assert read["items"] == [item]
        listed = api.get(f"{PATH}?include=items", token=platform_token()).get_json()["data"]
        assert listed[0]["items"] == [item]
        assert actions(tenant) == ["subscription.created", "tenant.plan_changed"]
        assert {one.actor for one in database.rows(AuditEvent)} == {"system:billing"}

    def test_has_no_amount_and_no_plan_where_the_provider_says_none(self, mirror, tenant, named):
        one = snapshot(amount=None, currency="", items=(), billing_cycle="", **named)

        mirror.apply(one)

        row = stored()
        assert (row.per_cycle_billing_amount, row.currency, row.items) == (0, "", [])
        assert (row.plan_name, row.bp_plan_id, row.billing_cycle) == ("unknown", "", "monthly")
        assert plan_of(tenant) == "free"
        assert "subscription.plan_unknown" in actions(tenant)

    def test_of_a_suspended_tenant_is_mirrored(self, mirror, presets):
        map_price("price_growth", "growth")
        tenant = create_tenant(is_active=False)

        mirror.apply(snapshot(tenant=str(tenant.id)))

        assert plan_of(tenant) == "growth"

    def test_that_two_events_tell_at_once_has_one_row(self, mirror, presets, named):
        for number in range(10):
            one = snapshot(subscription_id=f"sub_{number}", **named)
            both = [(one, 1), (replace(one, **PAST_DUE), 2)]

            at_once([lambda each=each: mirror.apply(*each) for each in both])

            assert stored(bp_subscription_id=f"sub_{number}").bp_status == "past_due"

    def test_that_names_two_tenants_at_once_has_one_row(self, mirror):
        tenants = [create_tenant(), create_tenant()]
        ones = [snapshot(tenant=str(tenant.id)) for tenant in tenants]

        at_once([lambda one=one: mirror.apply(one) for one in ones])

        assert len(database.rows(Subscription)) == 1


class TestOrder:
    def test_the_objects_own_time_counts_before_that_of_the_event(self, mirror, named):
        mirror.apply(snapshot(changed_at=at(5), **PAST_DUE, **named), 6)

        assert mirror.apply(snapshot(changed_at=at(4), **named), 7) is Outcome.STALE
        assert stored().source_timestamp == at(5)

    @pytest.mark.parametrize(
        ("earlier", "later"),
        [(PENDING, {}), ({}, PAST_DUE), (PAST_DUE, PAUSED), (PENDING, PAUSED)],
    )
    def test_on_a_tie_the_class_decides(self, mirror, named, earlier, later):
        first, second = snapshot(**earlier, **named), snapshot(**later, **named)
        for number, order in enumerate([(first, second), (second, first)]):
            for one in order:
                mirror.apply(replace(one, subscription_id=f"sub_{number}"))

        assert {row.bp_status for row in database.rows(Subscription)} == {second.status}

    def test_a_read_wins_over_payloads_and_earlier_reads(self, mirror, named):
        mirror.apply(snapshot(**named), 60)
        assert mirror.apply(snapshot(**PAST_DUE, **named), 30, is_read=True) is Outcome.APPLIED
        assert mirror.apply(snapshot(**named), 29, is_read=True) is Outcome.STALE
        assert mirror.apply(snapshot(**named), 30) is Outcome.STALE

        row = stored()
        assert (row.bp_status, row.read_at, row.source_timestamp) == ("past_due", at(30), at(60))

    def test_a_read_of_the_same_keeps_the_version(self, mirror, named):
        mirror.apply(snapshot(**named), 1, is_read=True)
        before = stored()
        mirror.apply(snapshot(**named), 2, is_read=True)

        assert stored() == before._replace(read_at=at(2))

    def test_force_applies_an_older_one_and_keeps_the_times(self, mirror, named):
        mirror.apply(snapshot(**PAST_DUE, **named), 5)

        assert mirror.apply(snapshot(**named), 4, force=True) is Outcome.APPLIED
        assert (stored().bp_status, stored().source_timestamp) == ("active", at(5))


class TestTheClass:
    def test_is_the_providers(self, api, mirror, presets, tenant, named):
        map_price("price_growth", "growth", provider="lemonsqueezy")
        one = snapshot(status="cancelled", cancel_at_period_end=True, **named)

        mirror.apply(one, provider="lemonsqueezy")
        with platform_transaction():
            changed = reconcile(tenant.id, actor=SYSTEM_CLI)

        token = platform_token()
        listed = api.get(f"{PATH}?bp_status=cancelled", token=token).get_json()["data"]
        assert changed == 0
        assert plan_of(tenant) == "growth"
        assert len(listed) == 1
        assert stored().status_class == "live"
        assert stored().canceled_at == at(0)

    def test_alone_can_change(self, mirror, presets, tenant, named):
        map_price("price_growth", "growth", provider="chargebee")
        mirror.apply(snapshot(**named), provider="chargebee")
        late = snapshot(status_class=StatusClass.PAST_DUE, **named)
        mirror.apply(late, 1, provider="chargebee")
        over = snapshot(status_class=StatusClass.ENDED, **named)
        mirror.apply(over, 2, provider="chargebee")

        (first, second) = database.rows(AuditEvent, action="subscription.updated")
        assert (first.before, first.after) == (
            {"status_class": "live"},
            {"status_class": "past_due"},
        )
        assert second.after["status_class"] == "ended"
        assert plan_of(tenant) == "free"

    def test_that_is_unknown_counts_as_not_ended(self, mirror, presets, tenant, named):
        map_price("price_growth", "growth")

        mirror.apply(snapshot(status="odd", status_class=StatusClass.UNKNOWN, **named))

        assert (plan_of(tenant), stored().status_class) == ("growth", "unknown")


class TestACancellation:
    def test_is_recorded_withdrawn_and_keeps_its_time(self, mirror, named):
        going = snapshot(cancel_at_period_end=True, cancel_reason="x", **named)
        mirror.apply(going, 1)
        mirror.apply(replace(going, amount=1), 2)
        recorded = stored()
        mirror.apply(snapshot(**named), 3)

        assert (recorded.canceled_at, recorded.cancel_reason) == (at(1), "x")
        assert recorded.cancel_at_period_end is True
        assert stored().canceled_at is stored().cancel_at_period_end is None


class TestWhatAProviderDoesNotSay:
    def test_stays_as_it_is(self, mirror, presets, named):
        map_price("price_growth", "growth")
        mirror.apply(snapshot(**named), 1)
        mirror.apply(snapshot(amount=None, currency="", billing_cycle="", items=(), **named), 2)

        row = stored()
        assert (row.per_cycle_billing_amount, row.currency) == (4900, "EUR")
        assert (row.plan_name, row.billing_cycle, row.items) == ("growth", "monthly", [])

    def test_billing_address_is_left_alone(self, api, mirror, tenant, named):
        mirror.apply(snapshot(**named), 1)
        body = {"billing_city": "Springfield"}
        assert (
            api.patch(f"{PATH}/{stored().id}", token=platform_token(), json=body).status_code == 200
        )
        mirror.apply(snapshot(amount=1, **named), 2)

        assert stored().billing_city == "Springfield"


class TestTakingOver:
    def test_a_row_without_a_provider(self, mirror, tenant):
        known = create_subscription(tenant, bp_subscription_id="sub_1", billing_city="Springfield")

        assert mirror.apply(snapshot()) is Outcome.APPLIED

        row = stored()
        assert (row.id, row.bp_provider, row.tenant_id) == (known.id, "stripe", tenant.id)
        assert (row.items[0]["price"], row.billing_city) == ("price_growth", "Springfield")

    def test_not_of_another_provider(self, mirror, tenant):
        create_subscription(tenant, bp_subscription_id="sub_1", bp_provider="paddle")

        assert mirror.apply(snapshot()) is Outcome.WAITING

    def test_not_of_another_provider_of_the_same_tenant_until_it_has_ended(self, mirror, named):
        mirror.apply(snapshot(**named))
        before = stored()

        assert mirror.apply(snapshot(**named), 1, provider="paddle") is Outcome.TAKEN
        assert stored() == before

        mirror.apply(ended(**named), 2)
        assert mirror.apply(snapshot(**named), 1, provider="paddle", force=True) is Outcome.APPLIED

    def test_not_of_another_tenants(self, mirror, named):
        mirror.apply(snapshot(**named))

        other = snapshot(tenant=create_tenant().slug)
        assert mirror.apply(other, provider="paddle") is Outcome.APPLIED

        assert {row.bp_provider for row in database.rows(Subscription)} == {"stripe", "paddle"}

    def test_of_an_id_that_has_moved_to_another_provider(self, mirror, presets, tenant, named):
        map_price("price_growth", "growth", provider="paddle")
        mirror.apply(ended(**named))
        before = stored()

        assert mirror.apply(snapshot(**named), 1, provider="paddle") is Outcome.APPLIED

        assert (stored().id, stored().bp_provider) == (before.id, "paddle")
        assert (stored().status_class, plan_of(tenant)) == ("live", "growth")

    def test_of_two_rows_with_the_id_that_of_the_named_tenant(self, mirror, tenant):
        for one in (create_tenant(), tenant):
            create_subscription(one, bp_subscription_id="sub_1")

        assert mirror.apply(snapshot()) is Outcome.WAITING
        assert mirror.apply(snapshot(tenant=tenant.idp_org_id)) is Outcome.APPLIED
        assert stored(bp_provider="stripe").tenant_id == tenant.id

    def test_after_a_newer_update_of_a_client_waits_for_the_next_event(self, mirror, tenant):
        create_subscription(tenant, bp_subscription_id="sub_1", source_timestamp=at(5))

        assert mirror.apply(snapshot(), 4) is Outcome.STALE
        assert mirror.apply(snapshot(), 5) is Outcome.APPLIED


class TestDifferences:
    @pytest.mark.parametrize(
        ("values", "kinds"),
        [
            ({}, set()),
            (PAST_DUE, {"class"}),
            ({"items": (Item("si_1", "price_growth", 2),)}, {"quantity"}),
            ({"items": (Item("si_1", "price_scale"),)}, {"price", "plan"}),
            ({"current_period_end": at(1)}, {"period"}),
            ({"trial_end": at(9)}, {"period"}),
            ({"cancel_at_period_end": True}, {"cancellation"}),
            ({"amount": 1}, {"other"}),
        ],
    )
    def test_are_told_by_kind(self, app, mirror, presets, named, values, kinds):
        map_price("price_growth", "growth")
        mirror.apply(snapshot(**named))

        before = stored()

        mirror.apply(snapshot(**values), 1)

        assert rules.drift(before, stored()) == kinds

    def test_the_plan_of_one_that_has_ended_does_not_count(self, mirror, presets, named):
        mirror.apply(ended(**named))
        before = stored()
        map_price("price_growth", "growth")

        mirror.apply(ended(), 1)

        assert rules.drift(before, stored()) == set()

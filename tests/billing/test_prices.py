"""Prices give plans, quantities give limits, and a changed price is applied to what is known."""

import json

import pytest
import yaml

from app.audit.models import AuditEvent
from app.billing.jobs import follow_prices
from app.billing.snapshots import Item
from app.flags.models import FeatureOverride
from app.plans.models import PlanPrice
from app.tenants.models import Tenant
from tests import database
from tests.billing.support import ended, map_price, seated, snapshot, stored
from tests.concurrency import at_once
from tests.factories import (
    create_limits,
    create_preset,
    create_tenant,
    limit_flag,
    platform_token,
)

PATH = "/v1/billing/prices"


@pytest.fixture
def seats(app):
    """The presets ``free``, ``growth`` and ``scale`` with a limit of seats."""
    most = {"free": 1, "growth": 3, "scale": 4}
    return {name: create_limits(name, limit_flag("seats", most[name])) for name in most}


@pytest.fixture
def put(api):
    def put(price_id="price_growth", plan_name="growth", *, query="", **values):
        body = {"provider": "stripe", "price_id": price_id, "plan_name": plan_name, **values}
        return api.put(f"{PATH}{query}", token=platform_token(), json=body)

    return put


@pytest.fixture
def limit_of(api):
    """The limit of seats as the usage of the tenant shows it."""

    def limit_of(tenant):
        path = f"/v1/usage?tenant_id={tenant.id}"
        listed = api.get(path, token=platform_token()).get_json()["data"]
        return next(one["limit"] for one in listed if one["feature"] == "seats")

    return limit_of


def plan_of(tenant):
    return database.row(Tenant, id=tenant.id).plan_name


def run(app):
    with app.app_context():
        follow_prices()


class TestThePlan:
    @pytest.mark.parametrize(
        ("items", "plan", "price"),
        [
            ((Item("1", "p1"), Item("2", "p2")), "scale", "p2"),
            ((Item("1", "p1"), Item("2", "p9")), "growth", "p1"),
            ((Item("1", "p9", lookup_key="by-key"),), "free", "p9"),
            ((Item("1", "p1", lookup_key="by-key"),), "growth", "p1"),
            ((Item("1", "p8", lookup_key="unmapped"), Item("2", "p9")), "unmapped", "p8"),
            ((Item("1", "p9"),), "p9", "p9"),
        ],
    )
    def test_is_that_of_the_mapped_item_with_the_lowest_order(
        self, mirror, presets, named, items, plan, price
    ):
        map_price("p1", "growth", sort_order=5)
        map_price("p2", "scale", sort_order=1)
        map_price(None, "free", lookup_key="by-key")
        map_price("p9", "scale", provider="paddle")
        map_price("p8", "scale", is_deleted=True)

        mirror.apply(snapshot(items=items, **named))

        assert (stored().plan_name, stored().bp_plan_id) == (plan, price)

    def test_of_an_unmapped_price_is_told_and_taken_from_nobody(self, mirror, presets, named):
        tenant = create_tenant(plan_name="growth")

        mirror.apply(snapshot(tenant=tenant.slug))

        assert plan_of(tenant) == "growth"
        told = database.row(AuditEvent, action="subscription.plan_unknown")
        assert told.after == {"plan_name": "price_growth"}


class TestQuantities:
    @pytest.fixture(autouse=True)
    def _mapped(self, seats):
        map_price("price_growth", "growth", limit_key="seats")
        map_price("price_scale", "scale", limit_key="seats", sort_order=1)
        map_price("price_more", "growth", limit_key="seats", sort_order=9)

    def test_set_the_limit_until_the_subscription_ends(self, mirror, tenant, named, limit_of):
        mirror.apply(seated(5, **named), 1)
        first = limit_of(tenant)
        override = database.row(FeatureOverride)
        mirror.apply(seated(7, **named), 2)
        second = limit_of(tenant)
        mirror.apply(ended(**named), 3)

        assert (first, second, limit_of(tenant)) == (5, 7, 1)
        assert (override.reason, override.carry_over) == ("stripe sub_1", True)
        assert database.rows(FeatureOverride) == []
        actions = [row.action for row in database.rows(AuditEvent) if row.action[:8] == "override"]
        assert actions == ["override.created", "override.updated", "override.deleted"]

    def test_of_several_items_are_added(self, mirror, tenant, named, limit_of):
        items = (Item("1", "price_growth", 5), Item("2", "price_more", 3), Item("3", "other", 9))

        mirror.apply(snapshot(items=items, **named))

        assert limit_of(tenant) == 8

    def test_leave_an_operators_own_change_until_they_change(
        self, api, mirror, tenant, named, limit_of
    ):
        mirror.apply(seated(5, **named), 1)
        path = f"/v1/billing/flags/overrides/{database.row(FeatureOverride).id}"
        api.patch(path, token=platform_token(), json={"flag_value": 50})
        mirror.apply(seated(5, amount=1, **named), 2)
        kept = limit_of(tenant)
        mirror.apply(seated(6, **named), 3)

        assert (kept, limit_of(tenant)) == (50, 6)

    def test_leave_an_operators_own_change_at_the_end(self, api, mirror, tenant, named):
        mirror.apply(seated(5, **named), 1)
        path = f"/v1/billing/flags/overrides/{database.row(FeatureOverride).id}"
        api.patch(path, token=platform_token(), json={"flag_value": 50})
        mirror.apply(ended(**named), 2)

        assert database.row(FeatureOverride).flag_value == 50

    def test_go_with_the_plan(self, mirror, tenant, named, limit_of):
        mirror.apply(seated(5, **named), 1)
        mirror.apply(snapshot(items=(Item("1", "price_scale", 5),), **named), 2)

        assert (plan_of(tenant), limit_of(tenant)) == ("scale", 5)

    def test_wait_for_a_plan_that_has_the_limit(self, mirror, tenant, named, limit_of):
        create_preset("bare")
        map_price("price_bare", "bare", limit_key="seats")
        mirror.apply(snapshot(items=(Item("1", "price_bare", 5),), **named), 1)
        assert database.rows(FeatureOverride) == []

        mirror.apply(seated(5, **named), 2)

        assert limit_of(tenant) == 5

    def test_of_an_unmapped_price_take_nothing_away(self, mirror, tenant, named, limit_of):
        mirror.apply(seated(5, **named), 1)
        mirror.apply(snapshot(items=(Item("1", "unheard-of", 1),), **named), 2)

        assert (plan_of(tenant), limit_of(tenant)) == ("growth", 5)


class TestTheApi:
    def test_sets_changes_lists_and_deletes(self, api, put, presets):
        first = put().get_json()["data"]
        second = put(plan_name="scale", sort_order=3).get_json()["data"]
        listed = api.get(f"{PATH}?provider=stripe", token=platform_token()).get_json()["data"]
        gone = api.delete(f"{PATH}/{first['id']}", token=platform_token())
        again = api.delete(f"{PATH}/{first['id']}", token=platform_token())
        left = api.get(PATH, token=platform_token()).get_json()["data"]
        third = put().get_json()["data"]

        assert (first["subscriptions"], first["changed"]) == (0, [])
        assert second["id"] == first["id"] == third["id"]
        assert [(one["plan_name"], one["sort_order"]) for one in listed] == [("scale", 3)]
        assert (gone.status_code, again.status_code, left) == (204, 404, [])
        assert [row.action for row in database.rows(AuditEvent)] == [
            "plan_price.created", "plan_price.updated", "plan_price.deleted", "plan_price.updated",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("values", "loc"),
        [
            ({"price_id": None}, ["body", "price_id"]),
            ({"lookup_key": "growth"}, ["body", "lookup_key"]),
            ({"plan_name": "nowhere"}, ["body", "plan_name"]),
            ({"limit_key": "seats"}, ["body", "limit_key"]),
        ],
    )
    def test_says_what_is_wrong_and_where(self, put, presets, values, loc):
        answer = put(**values)

        assert answer.status_code == 422
        assert [one["loc"] for one in answer.get_json()["detail"]] == [loc]
        assert database.rows(PlanPrice) == []

    def test_a_limit_must_be_one_of_the_plan(self, put, seats):
        assert put(limit_key="seats").status_code == 200

    def test_a_dry_run_tells_what_changes_and_writes_nothing(self, mirror, put, presets, named):
        for number in range(3):
            mirror.apply(snapshot(subscription_id=f"sub_{number}", **named))
        mirror.apply(snapshot(subscription_id="other", items=(Item("1", "p"),), **named))
        mirror.apply(ended(subscription_id="over", **named))
        before = len(database.rows(AuditEvent))

        dry = put(query="?dry_run=true").get_json()["data"]

        assert dry["subscriptions"] == len(dry["changed"]) == 3
        assert {(one["plan_name"], one["next_plan_name"]) for one in dry["changed"]} == {
            ("price_growth", "growth")
        }
        assert database.rows(PlanPrice) == []
        assert len(database.rows(AuditEvent)) == before
        assert put().get_json()["data"]["subscriptions"] == 3

    def test_two_requests_at_once_make_one_price(self, put, presets):
        platform_token()
        answers = at_once([put, put])

        assert [answer.status_code for answer in answers] == [200, 200]
        assert len(database.rows(PlanPrice)) == 1


class TestTheJob:
    def test_gives_known_subscriptions_the_plan_and_the_limit(
        self, app, mirror, put, seats, tenant, named, limit_of
    ):
        mirror.apply(seated(5, **named))
        mirror.apply(ended(subscription_id="over", **named))
        put(limit_key="seats")
        assert plan_of(tenant) == "free"

        run(app)

        assert (plan_of(tenant), limit_of(tenant)) == ("growth", 5)
        assert stored(bp_subscription_id="over").plan_name == "price_growth"
        assert database.row(PlanPrice).is_pending is False

    def test_follows_a_deleted_price_and_forgets_it(self, app, api, mirror, put, presets, named):
        created = put().get_json()["data"]
        mirror.apply(snapshot(**named))
        api.delete(f"{PATH}/{created['id']}", token=platform_token())

        run(app)

        assert stored().plan_name == "price_growth"
        assert database.rows(PlanPrice) == []

    def test_leaves_an_operators_plan_of_another_price(self, app, api, mirror, put, presets, named):
        map_price("price_growth", "growth")
        mirror.apply(snapshot(**named))
        path = f"/v1/billing/subscriptions/{stored().id}"
        api.patch(f"{path}?force=true", token=platform_token(), json={"plan_name": "scale"})
        put("price_other")

        run(app)

        assert stored().plan_name == "scale"


class TestFiles:
    def test_carry_prices(self, app, tmp_path):
        create_limits("growth", limit_flag("seats", 3))
        map_price("price_growth", "growth", limit_key="seats")
        map_price(None, "growth", lookup_key="by-key", sort_order=2)
        map_price("gone", "growth", is_deleted=True)
        runner, path = app.test_cli_runner(), tmp_path / "plans.yaml"
        exported = runner.invoke(args=["plans", "export"]).stdout
        path.write_text(exported)
        same = runner.invoke(args=["plans", "apply", str(path)])
        document = yaml.safe_load(exported)
        document["prices"][0]["sort_order"] = 7
        document["prices"].append({"provider": "polar", "price_id": "p", "plan_name": "growth"})
        path.write_text(yaml.safe_dump(document))
        changed = json.loads(runner.invoke(args=["plans", "apply", str(path), "--json"]).stdout)

        assert document["prices"][1] == {
            "provider": "stripe", "lookup_key": "by-key", "plan_name": "growth", "sort_order": 2,
        }  # fmt: skip
        assert "No difference." in same.stderr
        assert [(one["plan"], one["item"]) for one in changed] == [
            ("growth", "price stripe price_growth"),
            ("growth", "price polar p"),
        ]
        assert {row.sort_order for row in database.rows(PlanPrice, price_id="price_growth")} == {7}

    @pytest.mark.parametrize(
        ("prices", "told"),
        [
            ("x", "prices: Input should be a valid list"),
            ("[x]", "prices.0: Input should be a valid dictionary"),
            (
                "[{provider: stripe, plan_name: a}]",
                "prices.0.price_id: give either price_id or lookup_key",
            ),
            (
                "[{provider: x, price_id: a, plan_name: a}]",
                "prices.0.provider: Input should be 'stripe'",
            ),
            ("[{price: a}]", "prices.0.price: there is no such field"),
        ],
    )
    def test_say_what_is_wrong(self, app, tmp_path, prices, told):
        path = tmp_path / "plans.yaml"
        path.write_text(f"plans: []\nprices: {prices}\n")

        result = app.test_cli_runner().invoke(args=["plans", "apply", str(path)])

        assert result.exit_code == 2
        assert told in result.stderr

"""GET /v1/tenants/{tenant_id}/plan and ``flask tenants plan show``."""

import random
from datetime import UTC, datetime

import pytest

from app.core.actors import SYSTEM_CLI
from app.plans.following import follow_plan
from app.tenants.models import Tenant
from tests.database import platform_transaction, row
from tests.factories import create_member, create_subscription, create_tenant, platform_token

pytestmark = pytest.mark.usefixtures("presets")


def day(number: int) -> datetime:
    return datetime(2026, 1, number, tzinfo=UTC)


@pytest.fixture
def explain(api):
    def ask(tenant, token=None):
        answer = api.get(f"/v1/tenants/{tenant.id}/plan", token=token or platform_token())
        assert answer.status_code == 200, answer.text
        return answer.get_json()["data"]

    return ask


class TestExplainPlan:
    def test_names_the_subscription_and_why_not_the_others(self, explain):
        tenant = create_tenant(plan_name="growth")
        early = create_subscription(tenant, plan_name="scale", start_date=day(1))
        late = create_subscription(tenant, start_date=day(2), bp_status="past_due")
        ended = create_subscription(tenant, start_date=day(3), bp_status="canceled")
        _, _, token = create_member(tenant, role="billing")

        told = explain(tenant, token)

        assert told["candidates"][0] == {
            "source": "subscription",
            "plan_name": "growth",
            "decides": True,
            "because": told["because"],
            "subscription_id": str(late.id),
            "bp_subscription_id": late.bp_subscription_id,
            "bp_status": "past_due",
            "status_class": "past_due",
            "start_date": "2026-01-02T00:00:00Z",
            "until": None,
            "reason": "",
        }
        assert {name: told[name] for name in ("plan_name", "source", "subscription_id")} == {
            "plan_name": "growth",
            "source": "subscription",
            "subscription_id": str(late.id),
        }
        assert [
            (one["subscription_id"], one["decides"], one["because"].partition(" that")[0])
            for one in told["candidates"][1:]
        ] == [
            (str(early.id), False, "A subscription with a later start date, or a later id, takes precedence."),
            (None, False, "A subscription takes precedence."),
            (str(ended.id), False, "The subscription has ended."),
        ]  # fmt: skip

    def test_names_the_default_plan(self, explain):
        tenant = create_tenant(plan_name="free")
        create_subscription(tenant, plan_name="scale", bp_status="canceled")

        told = explain(tenant)
        alone = explain(create_tenant(plan_name="free"))

        assert (told["source"], told["subscription_id"]) == ("default", None)
        assert [one["decides"] for one in told["candidates"]] == [True, False]
        assert [one["plan_name"] for one in alone["candidates"]] == ["free"]
        assert told["because"] == "All subscriptions have ended."
        assert alone["because"] == "The tenant has no subscription."

    def test_says_that_the_tenant_has_another_plan(self, explain):
        tenant = create_tenant(plan_name="free")
        create_subscription(tenant, plan_name="scale")

        told = explain(tenant)

        assert told["plan_name"] == "free"
        assert "flask subscriptions reconcile" in told["because"]

    @pytest.mark.parametrize("seed", range(8))
    def test_agrees_with_the_rule_of_the_database(self, explain, seed):
        chosen = random.Random(seed)
        tenant = create_tenant()
        for number in range(chosen.randint(0, 5)):
            create_subscription(
                tenant,
                plan_name=f"plan-{number}",
                start_date=day(chosen.randint(1, 3)),
                bp_status=chosen.choice(["active", "canceled", "incomplete", "strange"]),
            )
        with platform_transaction():
            follow_plan(tenant.id, actor=SYSTEM_CLI)

        told = explain(tenant)

        (decisive,) = [one for one in told["candidates"] if one["decides"]]
        assert decisive["plan_name"] == told["plan_name"] == row(Tenant, id=tenant.id).plan_name

    def test_is_bounded(self, explain):
        tenant = create_tenant()
        for _ in range(101):
            create_subscription(tenant)

        assert len(explain(tenant)["candidates"]) == 101

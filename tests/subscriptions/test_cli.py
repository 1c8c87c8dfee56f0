"""``flask subscriptions``."""

from __future__ import annotations

import json

import pytest

from app.core.actors import SYSTEM_CLI
from tests.factories import create_subscription, create_tenant
from tests.subscriptions.support import audit_events, plan_of, stored

pytestmark = pytest.mark.usefixtures("presets")


@pytest.fixture
def run(app):
    """Runs a command; what it printed as JSON, or its result where it failed."""

    def invoke(*words, ok=True):
        result = app.test_cli_runner().invoke(args=["subscriptions", *map(str, words)])
        assert (result.exit_code == 0) == ok, result.output
        return json.loads(result.stdout) if ok and "--json" in words else result

    return invoke


class TestSubscriptionsCommands:
    def test_lists_with_filters(self, run):
        tenant = create_tenant()
        row = create_subscription(tenant, bp_status="unpaid")
        create_subscription(tenant)
        create_subscription(create_tenant())

        late = run("list", "--tenant", tenant.slug, "--status-class", "past_due", "--json")
        table = run("list", "--bp-status", "unpaid")

        assert [one["id"] for one in late] == [str(row.id)]
        assert row.bp_subscription_id in table.stdout

    def test_creates_updates_shows_and_cancels(self, run):
        tenant = create_tenant()
        fields = {
            "bp_subscription_id": "sub_1",
            "bp_customer_id": "cus_1",
            "bp_plan_id": "price_1",
            "bp_status": "active",
            "plan_name": "growth",
            "start_date": "2026-01-01T00:00:00Z",
            "billing_cycle": "monthly",
            "per_cycle_billing_amount": "4900",
        }
        pairs = [word for name, value in fields.items() for word in ("--set", f"{name}={value}")]

        made = run("create", "--tenant", tenant.slug, *pairs, "--json")
        plan = plan_of(tenant)
        run("update", made["id"], "--set", "plan_name=scale", "--json")
        shown = run("show", made["id"], "--json")
        ended = run("cancel", made["id"], "--reason", "too dear", "--json")

        assert (made["per_cycle_billing_amount"], plan) == (4900, "growth")
        assert shown["plan_name"] == "scale"
        assert (ended["bp_status"], plan_of(tenant)) == ("canceled", "free")
        assert {event.actor for event in audit_events(tenant)} == {SYSTEM_CLI.id}

    def test_finds_a_subscription_by_the_providers_id(self, run):
        row = create_subscription(create_tenant(), bp_subscription_id="sub_1")
        create_subscription(create_tenant(), bp_subscription_id="sub_2")

        shown = run("show", "sub_1", "--json")
        updated = run("update", "sub_1", "--set", "plan_name=growth", "--json")
        canceled = run("cancel", "sub_1", "--json")

        assert {one["id"] for one in (shown, updated, canceled)} == {str(row.id)}

    def test_does_not_choose_between_tenants(self, run):
        for _ in range(2):
            create_subscription(create_tenant(), bp_subscription_id="sub_1")

        assert "Several tenants have a subscription sub_1" in run("show", "sub_1", ok=False).stderr

    def test_ignores_an_update_that_is_late(self, run):
        row = create_subscription(create_tenant())
        run("update", row.id, "--set", "plan_name=a", "--source-timestamp", "2026-02-01T00:00:00Z")

        late = ["--set", "plan_name=b", "--source-timestamp", "2026-01-01T00:00:00Z"]
        result = run("update", row.id, *late)

        assert "Ignored" in result.stderr
        assert stored(row).plan_name == "a"

    def test_fails_with_one_sentence(self, run):
        unknown = run("show", "0198a8f0-0000-7000-8000-000000000000", ok=False)
        absent = run("update", "sub_x", "--set", "plan_name=a", ok=False)

        assert "There is no subscription 0198a8f0-0000-7000-8000-000000000000." in unknown.stderr
        assert absent.stderr == "Error: There is no subscription sub_x.\n"

    def test_reconciles_plans_and_classes(self, run):
        stray, tenant = create_tenant(plan_name="gone"), create_tenant(plan_name="gone")
        row = create_subscription(tenant, plan_name="growth")
        row = create_subscription(tenant, plan_name="old", bp_status="canceled")

        first = run("reconcile", "--json")
        second = run("reconcile", "--tenant", tenant.slug, "--json")

        assert first == {"tenants": 2, "rows_changed": 2}
        assert second == {"tenants": 1, "rows_changed": 0}
        assert (plan_of(stray), plan_of(tenant)) == ("free", "growth")
        assert stored(row).status_class == "ended"

"""``flask subscriptions``."""

import json

import pytest

from tests.factories import create_subscription, create_tenant
from tests.subscriptions.support import plan_of, stored

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

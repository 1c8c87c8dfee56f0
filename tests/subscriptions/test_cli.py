"""``flask subscriptions``."""

import json

import pytest

from app.audit.models import AuditEvent
from tests.database import row
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
        create_subscription(tenant, plan_name="growth")
        old = {"plan_name": "old", "bp_status": "canceled", "status_class": "live"}
        old = create_subscription(tenant, **old)

        first = run("reconcile", "--json")
        second = run("reconcile", "--tenant", tenant.slug, "--json")

        assert first == {"tenants": 2, "rows_changed": 3}
        assert second == {"tenants": 1, "rows_changed": 0}
        assert (plan_of(stray), plan_of(tenant)) == ("free", "growth")
        assert stored(old).status_class == "ended"
        assert row(AuditEvent, target_id=str(old.id)).after == {"status_class": "ended"}

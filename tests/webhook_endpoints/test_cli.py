"""``flask webhook-endpoints``, and what ``flask doctor`` and ``/metrics`` say of deliveries."""

from __future__ import annotations

import json

from app.webhook_deliveries.models import WebhookDelivery
from app.webhook_endpoints.models import WebhookEndpoint
from tests import database
from tests.factories import create_tenant, create_webhook_endpoint

URL = "https://hooks.example.com/"


def run(app, *args: str, input: str = ""):
    result = app.test_cli_runner().invoke(args=["webhook-endpoints", *args], input=input)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout) if "--json" in args else result.stdout


class TestCommands:
    def test_create_show_change_and_delete(self, app):
        tenant = create_tenant()
        made = run(
            app, "create", URL, "--type", "user.*", "--tenant", tenant.slug,
            "--header", "X-A=b", "--rate-limit", "5", "--json",
        )  # fmt: skip
        name = made["id"]

        assert made["secret"].startswith("whsec_")
        assert (made["tenant_id"], made["types"]) == (str(tenant.id), ["user.*"])
        assert "secret" not in run(app, "show", name, "--json")
        assert [one["id"] for one in run(app, "list", "--json")] == [name]
        assert run(app, "update", name, "--inactive", "--json")["is_active"] is False
        assert run(app, "rotate", name, "--json")["secret"] != made["secret"]
        run(app, "delete", name, "--yes")
        assert database.rows(WebhookEndpoint) == []

    def test_deliveries_resend_recover_and_test(self, app):
        endpoint = create_webhook_endpoint(create_tenant().id)
        name = str(endpoint.id)
        (failed,) = run(app, "deliveries", name, "--status", "failed", "--json")

        assert run(app, "resend", failed["id"], "--json")["status"] == "pending"
        database.execute("UPDATE webhook_deliveries SET status = 'failed', next_attempt_at = NULL")
        (recovered,) = run(app, "recover", name, "--since", "2020-01-01T00:00:00.000000Z", "--json")
        assert (recovered["resent"], recovered["is_complete"]) == (1, True)
        assert run(app, "test", name, "--json")["type"] == "tenant.updated"
        assert len(database.rows(WebhookDelivery)) == 2

    def test_deliveries_say_that_they_wait_for_a_suspended_tenant(self, app):
        tenant = create_tenant(slug="acme")
        name = str(create_webhook_endpoint(tenant.id).id)

        def listed():
            words = ["webhook-endpoints", "deliveries", name]
            return app.test_cli_runner().invoke(args=words).stderr

        assert listed() == ""
        database.execute("UPDATE tenants SET is_active = false")
        assert listed() == "The tenant acme is suspended: its deliveries wait until it is active.\n"


class TestMetrics:
    def test_tell_what_waits_by_class_of_endpoints(self, app, api):
        _, failing, paused = (create_webhook_endpoint(create_tenant().id) for _ in range(3))
        database.execute(
            "UPDATE webhook_deliveries SET status = 'pending',"
            " next_attempt_at = now() - interval '90 s'"
        )
        database.execute(
            "UPDATE webhook_endpoint_states SET failing_since = now() WHERE endpoint_id = :id",
            id=str(failing.id),
        )
        run(app, "update", str(paused.id), "--inactive", "--json")

        text = api.get("/metrics").text

        for name in ("healthy", "failing", "paused"):
            assert f'webhook_deliveries_waiting{{endpoints="{name}"}} 1.0' in text
        (line,) = [
            line
            for line in text.splitlines()
            if line.startswith('webhook_deliveries_overdue_seconds{endpoints="healthy"}')
        ]
        assert 90 <= float(line.split()[-1]) < 120
        result = app.test_cli_runner().invoke(args=["doctor", "--json"])
        (finding,) = [one for one in json.loads(result.stdout) if one["check"] == "sender"]
        assert not finding["ok"]
        assert "flask jobs background" in finding["fix"]

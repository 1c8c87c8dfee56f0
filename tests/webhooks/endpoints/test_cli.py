"""``flask webhook-endpoints``, and what ``flask doctor`` and ``/metrics`` say of deliveries."""

import json

from cryptography.fernet import Fernet

from tests import database
from tests.factories import create_tenant, create_webhook_endpoint

URL = "https://hooks.example.com/"


def run(app, *args: str, input: str = ""):
    result = app.test_cli_runner().invoke(args=["webhook-endpoints", *args], input=input)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout) if "--json" in args else result.stdout


class TestCommands:
    def test_new_key_is_one(self, app):
        (row,) = run(app, "new-key", "--json")

        Fernet(row["key"])


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
        run(app, "update", str(paused.id), "--no-active", "--yes", "--json")

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

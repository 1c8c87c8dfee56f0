"""Endpoints that fail, in the findings."""

from tests import database
from tests.factories import create_tenant, create_webhook_endpoint, platform_token
from tests.operations.test_state import findings


class TestFindings:
    def test_hint_at_webhook_endpoints_that_fail(self, app):
        token = platform_token()
        tenant = create_tenant()
        failing, waiting, given_up, paused = (
            create_webhook_endpoint(one.id)
            for one in (tenant, *(create_tenant() for _ in range(3)))
        )
        assert findings(app.test_client(), token)["webhook endpoints"]["level"] == "ok"
        database.execute(
            "UPDATE webhook_deliveries SET status = 'pending', next_attempt_at = now()"
            " WHERE endpoint_id <> :id",
            id=str(given_up.id),
        )
        database.execute(
            "UPDATE webhook_endpoint_states SET failing_since = '2026-01-05 09:45:30Z'"
            " WHERE endpoint_id <> :id",
            id=str(waiting.id),
        )
        database.execute(
            "UPDATE webhook_endpoints SET is_active = false WHERE id = :id", id=str(paused.id)
        )

        found = findings(app.test_client(), token)["webhook endpoints"]

        assert (found["ok"], found["level"]) == (True, "hint")
        assert found["found"] == f"failing: {tenant.slug}: {failing.id} since 2026-01-05 09:45"
        assert "flask webhook-endpoints deliveries" in found["fix"]

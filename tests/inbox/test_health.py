"""The inbox in /metrics."""

from app.inbox.models import WebhookEvent
from tests.factories import save
from tests.operations.test_metrics import samples


class TestMetrics:
    def test_tells_the_inbox_depth_and_age_by_state(self, api):
        values = {
            "source": "workos",
            "event_type": "user.created",
            "headers": {},
            "digest": "",
            "request_id": "",
        }
        save(WebhookEvent, external_id="one", **values)
        save(WebhookEvent, external_id="two", status="failed", **values)
        save(WebhookEvent, external_id="three", status="succeeded", **values)
        save(WebhookEvent, external_id="four", status="waiting_tenant", **values)

        found = samples(api.get("/metrics").text)

        assert found["inbox_events", ("state", "pending")] == 1
        assert found["inbox_events", ("state", "failed")] == 1
        assert found["inbox_events", ("state", "waiting_tenant")] == 1
        assert ("inbox_events", ("state", "succeeded")) not in found
        assert 0 <= found["inbox_oldest_seconds", ("state", "pending")] < 60

"""Events that wait for a position, in /metrics and flask doctor."""

from datetime import timedelta

from app.core.clock import utcnow
from app.events.models import OutboxEvent
from tests.cli.test_doctor import examine
from tests.factories import create_member, create_tenant, save
from tests.operations.test_metrics import samples


class TestMetrics:
    def test_tells_the_events_with_and_without_a_position(self, api):
        user, _, token = create_member(create_tenant())
        before = samples(api.get("/metrics").text)
        for name in ("a", "b"):
            api.patch(f"/v1/users/{user.id}", token=token, json={"first_name": name})

        waiting = samples(api.get("/metrics").text)
        api.sequence()
        after = samples(api.get("/metrics").text)

        assert before["events_waiting",] == before["events_waiting_seconds",] == 0
        assert waiting["events_waiting",] == 2
        assert 0 < waiting["events_waiting_seconds",] < 60
        assert after["events_waiting",] == 0
        assert after["events_sequenced_total",] == before["events_sequenced_total",] + 2


class TestDoctor:
    def test_finds_events_that_wait_for_a_sequencer(self, app, environment):
        values = {"type": "user.created", "actor": "system:idp", "is_platform_actor": False}
        save(
            OutboxEvent,
            tenant_id=create_tenant().id,
            created_at=utcnow() - timedelta(hours=1),
            **values,
        )

        found = examine(environment)[0]["sequencer"]

        assert not found["ok"]
        assert "1 events wait" in found["found"]
        assert "flask jobs background" in found["fix"]

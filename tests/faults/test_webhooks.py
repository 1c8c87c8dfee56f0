"""The short form of ``python -m tests.faults webhooks``."""

from tests.faults import webhooks


class TestEventsAmidFaults:
    def test_are_applied_exactly_once_or_refused(self, app, environment):
        report = webhooks.prove(
            app, environment, events=50, redis_away=2, postgres_restarts=1, sweeping=False
        )

        assert report.accepted >= 50
        assert report.kills > 2
        assert report.postgres_restarts == report.redis_outages == 1

"""The short form of ``python -m tests.faults billing``."""

from tests.faults import billing


class TestBillingEventsAmidKills:
    def test_are_applied_once_and_leave_no_drift(self, app, environment):
        report = billing.prove(app, environment, events=100, sweeping=False)

        assert report.events >= 100
        assert report.kills.total() > 2
        assert report.changes >= report.subscriptions > 5

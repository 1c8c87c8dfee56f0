"""The short form of ``python -m tests.faults failover``."""

from tests.faults import failover


class TestAcknowledgedChanges:
    def test_survive_the_death_of_the_primary(self, app, environment):
        report = failover.prove(app, environment, kills=1, allowed=30, sweeping=False)

        assert report.kills == 1
        assert report.changes > 10
        assert report.receipts > 10
        assert report.refused > 0

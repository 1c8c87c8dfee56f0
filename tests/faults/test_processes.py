"""The short form of ``python -m tests.faults processes``."""

from tests.faults import processes


class TestEveryProcessKilledAtRandom:
    def test_has_its_effects_exactly_once(self, app, environment):
        report = processes.prove(app, environment, seconds=5, sweeping=False)

        assert report.kills.total() > 0
        assert report.changes > 0
        assert report.receipts > 0

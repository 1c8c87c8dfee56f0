"""The short form of ``python -m tests.faults holds``."""

from tests.faults import holds


class TestHoldsAmidKills:
    def test_are_exact_and_settled_once(self, app, environment):
        report = holds.prove(
            app, environment, clients=4, workers=1, holds=20, outages=0, sweeping=False
        )

        assert report.kills.total() > 2
        assert report.answers["settle 200"] > 0

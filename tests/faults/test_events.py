"""The short form of ``python -m tests.faults events``."""

from tests.faults import events


class TestEventsAmidKills:
    def test_reach_each_reader_once_and_each_endpoint(self, app, environment):
        report = events.prove(app, environment, changes=150, kills=3, writers=6)

        assert len(report.committed) > 80
        assert report.rolled_back > 0
        assert report.kills == 3
        assert report.restarts == 1

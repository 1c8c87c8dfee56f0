"""The short form of ``python -m tests.faults events``."""

from tests.faults import events


class TestEventFeedAmidKills:
    def test_gives_each_reader_each_position_once(self, app, environment):
        report = events.prove(app, environment, changes=400, kills=3, writers=6)

        assert len(report.committed) > 300
        assert report.rolled_back > 0
        assert report.kills == 3

"""The short form of ``python -m tests.faults log_streams``."""

from tests.faults import log_streams


class TestLogStreamsAmidKills:
    def test_reach_each_target(self, app, environment):
        report = log_streams.prove(app, environment, events=3_000, kills=4, streams=6, dead_for=9)

        assert report.kills + report.freezes == 4
        assert report.restarts == 1
        assert report.objects > 0

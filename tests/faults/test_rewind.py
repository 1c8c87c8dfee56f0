"""The short form of ``python -m tests.faults rewind``."""

from tests.faults import rewind


class TestKilledRewinds:
    def test_make_each_change_once(self, app, environment):
        report = rewind.prove(app, environment, kills=4, users=1000)

        assert report.kills > 0
        assert report.changes == 1000

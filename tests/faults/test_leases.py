"""The short form of ``python -m tests.faults leases``."""

from tests.faults import leases


class TestLeases:
    def test_never_exceed_the_limit_and_count_what_was_allowed(self, app, environment):
        report = leases.prove(app, environment, processes=6, seconds=4, units=200, after=2)

        assert report.allowed > 100
        assert report.counted > 100
        assert report.looks > 10
        assert report.restarts >= 1

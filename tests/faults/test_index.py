"""The short form of ``python -m tests.faults index``."""

from tests.faults import index


class TestKilledIndexWorkers:
    def test_leave_an_index_that_equals_the_data(self, app, environment):
        report = index.prove(app, environment, kills=2, users=2000)

        assert report.rows > 0
        assert report.patches > 0

"""The short form of ``python -m tests.faults deletion``."""

from tests.faults import deletion


class TestKilledDeletions:
    def test_leave_nothing_of_the_tenant_and_count_each_row_once(self, app, environment):
        report = deletion.prove(app, environment, kills=3, users=3000)

        assert report.kills > 0
        assert report.rows > 18_000

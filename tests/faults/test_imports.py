"""The short form of ``python -m tests.faults imports``."""

from tests.faults import imports


class TestKilledImportWorkers:
    def test_apply_each_line_once(self, app, environment):
        report = imports.prove(app, environment, kills=3, users=1500)

        assert report.kills > 0
        assert report.faults == 30

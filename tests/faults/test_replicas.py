"""The short form of ``python -m tests.faults replicas``."""

from tests.faults import replicas


class TestFailingReplicas:
    def test_cost_no_request_and_show_nothing_stale(self, app, environment):
        report = replicas.prove(app, environment, reads=500)

        assert report.reads > 460
        assert report.answered_by["replica"] > 0
        assert report.faults.total() > 3

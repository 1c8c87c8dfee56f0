"""Tenants see nothing of one another under load: the short form of ``tests.soak``."""

from tests.hostile import isolation
from tests.hostile.installation import bound


class TestIsolation:
    def test_holds_amid_errors_time_outs_and_aborts(self, app, service, figure):
        with bound(service.app):
            report = isolation.prove(service, requests=1000, tenants=12)

        figure(str(report))
        assert report.foreign == []
        assert report.strange == []
        assert report.requests >= 1000
        assert report.marks_seen > 1000
        assert report.answers[503] > 0
        assert report.aborted > 20

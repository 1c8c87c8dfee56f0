"""The form of ``python -m tests.faults streams`` that runs with the tests."""

from tests.faults import streams


def test_no_event_is_lost_or_doubled(app, environment):
    report = streams.prove(app, environment, seconds=3, with_slow_readers=False)

    assert report.changes > 25
    assert (report.kills, report.restarts) == (2, 2)
    assert report.revoked_after < 5

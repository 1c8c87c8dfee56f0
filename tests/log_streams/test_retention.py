"""What log streams have not read is kept, told, and removed at last."""

from app.core.clock import utcnow
from app.events import positions
from app.log_streams import service, work
from app.log_streams.models import LogStream
from tests.database import execute, platform_transaction, query, row
from tests.factories import create_log_stream, create_tenant, create_user, platform_token
from tests.log_streams.support import change, progress, write_due
from tests.operations.test_state import findings


def age(superuser, days: int) -> None:
    superuser.execute(f"UPDATE events SET created_at = now() - interval '{days} days'")


def count() -> int:
    return query("SELECT count(*) AS found FROM events")[0].found


class TestRetention:
    def test_keeps_what_a_stream_has_not_read_for_a_week(self, app, superuser):
        change(app, create_user(create_tenant()), "Ada")
        create_log_stream(start="beginning")
        total = count()

        for days, left in ((89, total), (91, total), (96, total), (98, 0)):
            age(superuser, days)
            with app.app_context():
                positions.remove_old()
            assert count() == left, days

    def test_removes_what_all_have_read(self, app, superuser):
        change(app, create_user(create_tenant()), "Ada")
        create_log_stream()
        age(superuser, 91)

        with app.app_context():
            positions.remove_old()

        assert count() == 0

    def test_a_stream_that_lost_events_stops(self, app, superuser):
        stream = create_log_stream(start="beginning", state="active")
        change(app, create_user(create_tenant()), "Ada")
        age(superuser, 98)
        with app.app_context():
            positions.remove_old()

        write_due(app)

        stored = row(LogStream, id=stream.id)
        assert (stored.state, stored.error) == ("invalid", work.GONE)


class TestWarning:
    def test_is_an_event_and_a_finding_once(self, app, superuser):
        stream = create_log_stream()
        execute("UPDATE log_stream_progress SET written_until = now() - interval '91 days'")

        for _ in range(2):
            with platform_transaction():
                service.warn_behind()

        warned = query("SELECT FROM audit_events WHERE action = 'log_stream.behind'")
        assert len(warned) == 1
        assert progress(stream).warned_at <= utcnow()
        found = findings(app.test_client(), platform_token())["log streams"]
        assert found["level"] == "hint"
        assert f"platform: {stream.id} is behind" in found["found"]


class TestFindings:
    def test_a_due_stream_that_nobody_writes_is_a_fault(self, app):
        create_log_stream(state="active")
        token = platform_token()
        assert findings(app.test_client(), token)["log streams"]["level"] == "ok"
        execute("UPDATE log_stream_progress SET next_attempt_at = now() - interval '2 minutes'")

        found = findings(app.test_client(), token)["log streams"]

        assert (found["level"], found["fix"]) == ("fault", "Run flask jobs background.")

    def test_the_lag_is_a_metric(self, app, client):
        create_log_stream(state="active")
        execute("UPDATE log_stream_progress SET written_until = now() - interval '1 hour'")

        text = client.get("/metrics").text

        [line] = [one for one in text.splitlines() if one.startswith("log_stream_lag_seconds ")]
        assert 3600 <= float(line.split()[1]) < 3700
        assert 'log_stream_states{state="active"} 1.0' in text

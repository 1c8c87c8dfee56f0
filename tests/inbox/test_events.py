"""The operators' view of the inbox."""

import pytest

from app.audit.models import AuditEvent
from app.core.clock import utcnow
from app.inbox import service
from app.inbox.providers import EMAIL
from app.tenants.models import Tenant
from tests import database, factories
from tests.conformance.webhook_samples import document
from tests.inbox.sending import all_rows, event_row, work_off
from tests.inbox.test_processing import change_event, forget_queue, queued

EVENTS = "/v1/webhooks/events"


@pytest.fixture
def token(app) -> str:
    return factories.platform_token()


class TestList:
    def test_shows_what_came_and_what_became_of_it(self, api, sender, token):
        event = sender.deliver_sample("workos", "organization.created")

        (shown,) = api.get(EVENTS, token=token).get_json()["data"]

        assert (shown["id"], shown["status"]) == (str(event.id), "succeeded")

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("source=workos", 2),
            ("source=workos&status=succeeded", 2),
            ("type=invitation.accepted", 1),
            ("status=failed", 0),
            ("created_after=2026-01-01T00:00:00Z", 3),
            ("created_before=2026-01-01T00:00:00Z", 0),
        ],
    )
    def test_is_narrowed(self, api, sender, token, query, found):
        sender.deliver_sample("workos", "organization.created")
        sender.deliver_sample("workos", "invitation.accepted")
        sender.deliver_sample("clerk", "user.created")

        answer = api.get(f"{EVENTS}?{query}", token=token)

        assert len(answer.get_json()["data"]) == found


class TestGet:
    def test_shows_payload_and_headers_without_secrets(self, api, sender, token):
        sender.post("mailgun", document("mailgun", "opened"), receiver=EMAIL)
        (event,) = api.get(EVENTS, token=token).get_json()["data"]

        shown = api.get(f"{EVENTS}/{event['id']}", token=token).get_json()["data"]

        assert shown["payload"]["event-data"]["event"] == "opened"
        assert shown["payload"]["signature"] == "[redacted]"
        assert shown["headers"]["content-type"] == "application/json"

    def test_shows_text_that_is_no_json(self, api, sender, token):
        event_id = sender.post("standard_webhooks", b"hello \xff").get_json()["event_id"]

        shown = api.get(f"{EVENTS}/{event_id}", token=token).get_json()["data"]

        assert shown["payload"] == "hello \ufffd"


class TestReplay:
    def test_applies_what_has_failed(self, app, api, sender, token):
        event = sender.deliver_sample("workos", "organization.created")
        change_event(event.id, status="failed", attempts=5)

        forget_queue(app)
        answer = api.post(f"{EVENTS}/{event.id}/replay", token=token)

        assert answer.status_code == 202
        assert answer.get_json()["data"]["status"] == "pending"
        assert queued(app) == 1
        work_off(app)
        assert event_row(event.id).status == "succeeded"

    def test_does_not_make_active_what_was_ended_here(self, app, api, sender, token):
        event = sender.deliver_sample("workos", "organization.created")
        database.execute("UPDATE tenants SET is_active = false")

        api.post(f"{EVENTS}/{event.id}/replay", token=token)
        work_off(app)

        assert all_rows(Tenant)[0].is_active is False

    def test_of_a_forgotten_payload_is_409(self, api, sender, token):
        event = sender.deliver_sample("workos", "organization.created")
        change_event(event.id, body=None, processed_at=utcnow())

        answer = api.post(f"{EVENTS}/{event.id}/replay", token=token)

        assert answer.status_code == 409
        assert answer.get_json()["code"] == "payload_forgotten"


class TestReplayFailed:
    @pytest.fixture
    def failed(self, sender):
        """Two failed events of one provider and one of another, the oldest first."""
        events = [
            sender.deliver_sample("workos", "organization.created"),
            sender.deliver_sample("workos", "user.created"),
            sender.deliver("standard_webhooks", {"type": "other"}, message_id="m"),
        ]
        for event in events:
            change_event(event.id, status="failed", attempts=5)
        return events

    def test_applies_what_has_failed(self, app, api, failed, token):
        forget_queue(app)

        answer = api.post(f"{EVENTS}/replay-failed", token=token)

        assert answer.status_code == 202
        assert answer.get_json()["data"] == {"replayed": 3, "has_more": False}
        assert queued(app) == 1
        work_off(app)
        assert [event_row(event.id).status for event in failed[:2]] == ["succeeded"] * 2
        rows = all_rows(AuditEvent, action="webhook_event.replayed")
        assert {(row.target_id, row.actor) for row in rows} == {
            (str(event.id), "platform:platform-operator") for event in failed
        }
        assert {tuple(row.after.items()) for row in rows} == {
            (("status", "pending"), ("replays", 1))
        }

    def test_takes_only_those_of_a_provider_that_have_a_payload(self, api, failed, token):
        change_event(failed[0].id, body=None)

        answer = api.post(f"{EVENTS}/replay-failed?source=workos", token=token)

        assert answer.get_json()["data"]["replayed"] == 1
        assert [event_row(event.id).status for event in failed] == ["failed", "pending", "failed"]

    def test_takes_a_bounded_number_the_oldest_first(self, app, api, failed, token, monkeypatch):
        monkeypatch.setattr(service, "REPLAYED_AT_ONCE", 2)
        answers, jobs_queued = [], []
        for _ in range(3):
            forget_queue(app)
            answer = api.post(f"{EVENTS}/replay-failed", token=token)
            statuses = [event_row(event.id).status for event in failed]
            answers.append((answer.get_json()["data"], statuses.count("failed")))
            jobs_queued.append(queued(app))
            assert statuses == sorted(statuses, reverse=True)

        assert answers == [
            ({"replayed": 2, "has_more": True}, 1),
            ({"replayed": 1, "has_more": False}, 0),
            ({"replayed": 0, "has_more": False}, 0),
        ]
        assert jobs_queued == [1, 1, 0]

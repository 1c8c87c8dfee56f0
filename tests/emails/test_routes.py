"""The e-mail lists over HTTP, and who may read them."""

from __future__ import annotations

import pytest

from app.emails.events import EmailKind
from tests import factories
from tests.emails.test_service import email_event, record

EVENTS = "/v1/app-communications/email-events"
MESSAGES = "/v1/app-communications/email-messages"
SUPPRESSIONS = "/v1/app-communications/suppressions"


@pytest.fixture
def token(app) -> str:
    return factories.platform_token()


class TestEmailEvents:
    def test_shows_every_field(self, api, token):
        record(email_event(EmailKind.BOUNCED, reason="gone", response="550", metadata={"k": "v"}))

        (shown,) = api.get(EVENTS, token=token).get_json()["data"]

        assert list(shown) == [
            "id",
            "created_at",
            "webhook_event_id",
            "source",
            "message_id",
            "recipient",
            "kind",
            "occurred_at",
            "reason",
            "response",
            "url",
            "tags",
            "metadata",
        ]
        assert (shown["kind"], shown["occurred_at"]) == ("bounced", "2026-01-05T09:00:00Z")
        assert shown["metadata"] == {"k": "v"}

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("recipient=ADA@acme.example", 2),
            ("message_id=m2", 1),
            ("kind=opened", 1),
            ("source=mailgun", 0),
            ("occurred_after=2026-01-05T09:05:00Z", 1),
            ("occurred_before=2026-01-05T09:05:00Z", 2),
        ],
    )
    def test_is_narrowed(self, api, token, query, found):
        record(
            email_event(EmailKind.SENT),
            email_event(EmailKind.OPENED, 5),
            email_event(EmailKind.SENT, message_id="m2", recipient="bob@acme.example"),
        )

        answer = api.get(f"{EVENTS}?{query}", token=token)

        assert len(answer.get_json()["data"]) == found


class TestEmailMessages:
    def test_shows_what_became_of_a_message(self, api, token):
        record(email_event(EmailKind.DELIVERED), email_event(EmailKind.OPENED, 1))

        (shown,) = api.get(f"{MESSAGES}?message_id=m1", token=token).get_json()["data"]

        assert (shown["state"], shown["opens"]) == ("delivered", 1)
        assert shown["recipient"] == "ada@acme.example"
        assert shown["first_clicked_at"] is None


class TestSuppressions:
    def test_are_listed_and_lifted(self, api, token):
        record(email_event(EmailKind.BOUNCED), email_event(EmailKind.COMPLAINED))

        listed = api.get(SUPPRESSIONS, token=token).get_json()["data"]
        lifted = api.delete(f"{SUPPRESSIONS}/Ada@acme.example", token=token)
        again = api.delete(f"{SUPPRESSIONS}/Ada@acme.example", token=token)

        assert [(entry["address"], entry["cause"]) for entry in listed] == [
            ("ada@acme.example", "bounced"),
            ("ada@acme.example", "complained"),
        ]
        assert (lifted.status_code, lifted.data) == (204, b"")
        assert api.get(SUPPRESSIONS, token=token).get_json()["data"] == []
        assert again.status_code == 404

    def test_may_have_addresses_with_a_slash(self, api, token):
        record(email_event(EmailKind.BOUNCED, recipient="a/b@acme.example"))

        answer = api.delete(f"{SUPPRESSIONS}/a%2Fb@acme.example", token=token)

        assert answer.status_code == 204

    def test_are_found_by_address(self, api, token):
        record(email_event(EmailKind.BOUNCED))

        found = api.get(f"{SUPPRESSIONS}?address=ada@acme.example", token=token)
        other = api.get(f"{SUPPRESSIONS}?address=bob@acme.example", token=token)

        assert len(found.get_json()["data"]) == 1
        assert other.get_json()["data"] == []

"""The e-mail lists over HTTP, and who may read them."""

from urllib.parse import quote

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
    @pytest.mark.parametrize("name", ["Ada", "a/b"])
    def test_are_listed_and_lifted(self, api, token, name):
        events = [EmailKind.BOUNCED, EmailKind.COMPLAINED]
        record(*(email_event(kind, recipient=f"{name}@acme.example") for kind in events))
        path = f"{SUPPRESSIONS}/{quote(name, safe='')}@acme.example"

        listed = api.get(SUPPRESSIONS, token=token).get_json()["data"]
        lifted, again = (api.delete(path, token=token) for _ in range(2))

        assert [(entry["address"], entry["cause"]) for entry in listed] == [
            (f"{name.lower()}@acme.example", cause) for cause in ("bounced", "complained")
        ]
        assert (lifted.status_code, lifted.data, again.status_code) == (204, b"", 404)
        assert api.get(SUPPRESSIONS, token=token).get_json()["data"] == []

    def test_are_found_by_address(self, api, token):
        record(email_event(EmailKind.BOUNCED))

        numbers = [
            len(api.get(f"{SUPPRESSIONS}?address={name}@acme.example", token=token).json["data"])
            for name in ("ada", "bob")
        ]

        assert numbers == [1, 0]

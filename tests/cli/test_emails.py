"""`flask emails`."""

from __future__ import annotations

import json

from app.emails.events import EmailKind
from tests.emails.test_service import email_event, record


def run(app, *words: str):
    ended = app.test_cli_runner().invoke(args=["emails", *words, "--json"])
    assert ended.exit_code == 0, ended.output
    return json.loads(ended.stdout)


class TestEmails:
    def test_lists_events_of_an_address(self, app):
        record(email_event(EmailKind.SENT), email_event(EmailKind.OPENED, recipient="b@x.example"))

        events = run(app, "events", "--recipient", "ada@acme.example")

        assert [event["kind"] for event in events] == ["sent"]

    def test_lists_and_lifts_suppressions(self, app):
        record(email_event(EmailKind.BOUNCED))

        listed = run(app, "suppressions", "--cause", "bounced")
        lifted = run(app, "lift", "ada@acme.example")

        assert [entry["address"] for entry in listed] == ["ada@acme.example"]
        assert lifted == [{"address": "ada@acme.example", "lifted": True}]
        assert run(app, "suppressions") == []

    def test_refuses_to_lift_an_address_that_is_not_listed(self, app):
        ended = app.test_cli_runner().invoke(args=["emails", "lift", "nobody@acme.example"])

        assert ended.exit_code == 1

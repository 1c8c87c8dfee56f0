"""What e-mail events mean, judged by django-anymail where it judges, and by its exceptions here.

Where we differ from it on purpose:

- Resend: its ``tags`` are our metadata (anymail looks for headers of its own making); failed,
  suppressed and scheduled are newer than it.
- SES: the time is the event's own, not the notification's; ``mail.tags`` are our metadata;
  delays and preferences are newer than it; a transient bounce is a soft one.
- SendGrid: the message id is the one that sending answered, not the SMTP id; members that
  SendGrid defines are no metadata; a reason is what anymail calls the server's response.
- Mailgun: what its suppression list stopped was never attempted, so it is no bounce.
- Postmark: what anymail calls bounced is soft or hard here.
"""

import json
from datetime import datetime
from typing import Any

import pytest

from app.emails.events import Cause, EmailKind, Suppression
from app.inbox.providers import get_provider
from app.inbox.providers.payloads import Posted, Unwanted
from app.inbox.providers.provider import SubscriptionConfirmation
from tests.conformance.webhook_samples import (
    changed,
    document,
    expected_events,
    sample,
    sample_files,
)

EMAIL = ["resend", "sendgrid", "mailgun", "postmark", "ses"]
ANYMAIL_NAMES = {
    EmailKind.SENT: {"sent", "queued"},
    EmailKind.SOFT_BOUNCED: {"bounced"},
    EmailKind.RESUBSCRIBED: {"subscribed"},
    EmailKind.REJECTED: {"rejected", "failed"},
}
OTHER_KINDS = {
    ("resend", "email.failed"): EmailKind.REJECTED,
    ("resend", "email.suppressed"): EmailKind.REJECTED,
    ("resend", "email.scheduled"): EmailKind.SCHEDULED,
    ("ses", "DeliveryDelay"): EmailKind.DEFERRED,
    ("ses", "Subscription"): EmailKind.UNSUBSCRIBED,
    ("mailgun", "failed.permanent.suppressed"): EmailKind.REJECTED,
}
SUPPRESSED = {
    ("resend", "email.bounced"): [Suppression(Cause.BOUNCED)],
    ("resend", "email.complained"): [Suppression(Cause.COMPLAINED)],
    ("sendgrid", "bounce"): [Suppression(Cause.BOUNCED)],
    ("sendgrid", "bounce.asynchronous_without_sg_message_id"): [Suppression(Cause.BOUNCED)],
    ("sendgrid", "spamreport"): [Suppression(Cause.COMPLAINED)],
    ("sendgrid", "unsubscribe"): [Suppression(Cause.UNSUBSCRIBED)],
    ("sendgrid", "group_unsubscribe"): [Suppression(Cause.UNSUBSCRIBED, "group:10")],
    ("sendgrid", "group_resubscribe"): [Suppression(Cause.UNSUBSCRIBED, "group:10", lifted=True)],
    ("mailgun", "failed.permanent"): [Suppression(Cause.BOUNCED)],
    ("mailgun", "complained"): [Suppression(Cause.COMPLAINED)],
    ("mailgun", "unsubscribed"): [Suppression(Cause.UNSUBSCRIBED)],
    ("postmark", "Bounce.HardBounce"): [Suppression(Cause.BOUNCED)],
    ("postmark", "SpamComplaint"): [Suppression(Cause.COMPLAINED)],
    ("postmark", "SubscriptionChange.suppressed"): [
        Suppression(Cause.UNSUBSCRIBED, "stream:outbound")
    ],
    ("postmark", "SubscriptionChange.reactivated"): [
        Suppression(Cause.UNSUBSCRIBED, "stream:outbound", lifted=True),
        Suppression(Cause.BOUNCED, lifted=True),
    ],
    ("ses", "Bounce"): [Suppression(Cause.BOUNCED)],
    ("ses", "legacy-notification.Bounce"): [Suppression(Cause.BOUNCED)],
    ("ses", "Complaint"): [Suppression(Cause.COMPLAINED)],
    ("ses", "Subscription"): [
        Suppression(Cause.UNSUBSCRIBED),
        Suppression(Cause.UNSUBSCRIBED, "topic:dunning"),
    ],
}
IGNORED = {
    ("resend", "email.received"),
    ("ses", "topic-validation.plain-text-message"),
    ("ses", "sns.UnsubscribeConfirmation"),
}
CORRELATION = {"tenant_id": "t-118", "communication_id": "c-5521"}


def samples() -> list[tuple[str, str]]:
    return [(provider, name) for provider in EMAIL for name in sample_files(provider)]


def adapt_all(provider: str, body: bytes) -> list[Any]:
    """Every event of a request: split, then adapted row by row."""
    adapter = get_provider(provider)
    rows = adapter.split(Posted(body), "msg_1")
    assert not any(row.error for row in rows)
    return [event for row in rows for event in adapter.adapt(row.body)]


def adapt(provider: str, changed: Any) -> list[Any]:
    return adapt_all(provider, json.dumps(changed).encode())


def adapt_changed(provider: str, name: str, **values: Any) -> Any:
    """The one event of a sample with other values."""
    (event,) = adapt(provider, changed(provider, name, **values))
    return event


class TestEverySample:
    @pytest.mark.parametrize(
        ("provider", "name"), [case for case in samples() if case not in IGNORED]
    )
    def test_means_what_anymail_says(self, provider: str, name: str) -> None:
        events = adapt_all(provider, sample(provider, name))

        expected = expected_events(provider)[name]
        suppressions = [one for event in events for one in getattr(event, "suppressions", ())]
        assert suppressions == SUPPRESSED.get((provider, name), [])
        if name == "sns.SubscriptionConfirmation":
            assert expected == []
            assert isinstance(events[0], SubscriptionConfirmation)
            return
        for event, judged in zip(events, expected, strict=True):
            if (provider, name) in OTHER_KINDS:
                assert event.kind is OTHER_KINDS[provider, name]
            else:
                assert judged["event_type"] in ANYMAIL_NAMES.get(event.kind, {event.kind.value})
            assert event.recipient == judged["recipient"]
            moved = abs(event.occurred_at - datetime.fromisoformat(judged["timestamp"]))
            assert moved.total_seconds() <= (0.25 if provider == "ses" else 0)
            if provider != "sendgrid":
                assert event.message_id == judged["message_id"]
                assert event.response == (judged["mta_response"] or event.response)
            assert event.url == (judged["click_url"] or "")
            assert list(event.tags) == judged["tags"]
            has_senders_values = name != "legacy-notification.Bounce"
            assert event.metadata == (CORRELATION if has_senders_values else {})

    @pytest.mark.parametrize(("provider", "name"), sorted(IGNORED))
    def test_that_is_not_about_a_message_sent_is_unwanted(self, provider: str, name: str) -> None:
        with pytest.raises(Unwanted):
            adapt_all(provider, sample(provider, name))


# A sample with other values, and what its event says then.
CHANGED: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "a transient bounce suppresses nobody": (
        "resend", "email.bounced", {"data__bounce__type": "Transient"},
        {"kind": EmailKind.SOFT_BOUNCED, "suppressions": ()},
    ),
    "the message is known by the id that sending answered": (
        "sendgrid", "delivered", {}, {"message_id": "lVqteO7WCCCtMaJBfMKewv"},
    ),
    "an asynchronous bounce is known by its SMTP id": (
        "sendgrid", "bounce.asynchronous_without_sg_message_id", {},
        {"message_id": "<NfZXVNwLLHWxD5HYZ5b6lv@geopod-ismtpd-7>"},
    ),
    "a category may be one text": (
        "sendgrid", "open", {"0__category": "invoices"}, {"tags": ("invoices",)},
    ),
    "a rejected message was not attempted": (
        "mailgun", "accepted",
        {"event-data__event": "rejected", "event-data__reject": {"reason": "sandbox"}},
        {"kind": EmailKind.REJECTED, "reason": "sandbox"},
    ),
    **{
        f"the type {name} of a bounce is {kind}": (
            "postmark", "Bounce.HardBounce", {"Type": name}, {"kind": kind},
        )
        for name, kind in (
            ("BadEmailAddress", EmailKind.BOUNCED), ("DnsError", EmailKind.DEFERRED),
            ("Blocked", EmailKind.REJECTED), ("ManuallyDeactivated", EmailKind.REJECTED),
        )
    },
    "an address suppressed for a complaint is so here": (
        "postmark", "SubscriptionChange.suppressed", {"SuppressionReason": "SpamComplaint"},
        {"suppressions": (Suppression(Cause.COMPLAINED),)},
    ),
}  # fmt: skip


class TestChangedSample:
    @pytest.mark.parametrize("rule", CHANGED)
    def test_says_something_else(self, rule: str) -> None:
        provider, name, values, expected = CHANGED[rule]

        event = adapt_changed(provider, name, **values)

        assert {name: getattr(event, name) for name in expected} == expected


class TestResend:
    def test_takes_a_diagnostic_in_any_of_its_forms(self) -> None:
        responses = [
            adapt_changed("resend", "email.bounced", data__bounce__diagnosticCode=form).response
            for form in (["550 5.1.1", "unknown"], "550 5.1.1", None)
        ]

        assert responses == ["550 5.1.1 unknown", "550 5.1.1", ""]

    def test_of_several_recipients_nobody_is_suppressed(self) -> None:
        body = document("resend", "email.bounced")
        body["data"]["to"].append("Ana <ana@fjord.example>")

        events = adapt("resend", body)

        assert [e.recipient for e in events] == ["k.nilsson@fjord.example", "ana@fjord.example"]
        assert [e.suppressions for e in events] == [(), ()]

    def test_a_contact_that_unsubscribed_is_suppressed(self) -> None:
        body = {
            "type": "contact.updated",
            "created_at": "2026-01-05T09:45:09.123Z",
            "data": {"email": "k@fjord.example", "unsubscribed": True},
        }

        (event,) = adapt("resend", body)

        assert (event.kind, event.message_id) == (EmailKind.UNSUBSCRIBED, "")
        assert event.suppressions == (Suppression(Cause.UNSUBSCRIBED),)


def ses(name: str, **changes: Any) -> dict[str, Any]:
    """A sample notification with members of the event in it replaced."""
    envelope = document("ses", name)
    envelope["Message"] = json.dumps(json.loads(envelope["Message"]) | changes)
    return envelope


class TestSES:
    def test_each_bounced_recipient_is_an_event(self) -> None:
        bounce = json.loads(document("ses", "Bounce")["Message"])["bounce"]
        bounce["bouncedRecipients"].append({"emailAddress": "b@fjord.example"})

        events = adapt("ses", ses("Bounce", bounce=bounce))

        assert [(e.recipient, e.response) for e in events] == [
            ("k.nilsson@fjord.example", "smtp; 550 5.1.1 user unknown"),
            ("b@fjord.example", ""),
        ]

    def test_a_report_that_it_is_not_spam_is_unwanted(self) -> None:
        complaint = json.loads(document("ses", "Complaint")["Message"])["complaint"]
        complaint["complaintFeedbackType"] = "not-spam"

        with pytest.raises(Unwanted):
            adapt("ses", ses("Complaint", complaint=complaint))

    def test_a_topic_joined_again_lifts_that_topic_only(self) -> None:
        detail = json.loads(document("ses", "Subscription")["Message"])["subscription"]
        old, new = detail["oldTopicPreferences"], detail["newTopicPreferences"]
        old["unsubscribeAll"] = new["unsubscribeAll"] = False
        old["topicSubscriptionStatus"][0]["subscriptionStatus"] = "OptOut"
        new["topicSubscriptionStatus"][0]["subscriptionStatus"] = "OptIn"

        (event,) = adapt("ses", ses("Subscription", subscription=detail))

        assert event.kind is EmailKind.RESUBSCRIBED
        assert event.suppressions == (
            Suppression(Cause.UNSUBSCRIBED, "topic:dunning", lifted=True),
        )


class TestGenericEmail:
    def body(self, type_: str, **data: Any) -> dict[str, Any]:
        return {"type": type_, "timestamp": "2026-01-05T09:45:05Z", "data": data}

    def test_is_one_event_per_recipient(self) -> None:
        body = self.body(
            "email.bounced",
            recipient=["a@b.example", "c@d.example"],
            message_id="m1",
            response="550 5.1.1",
            tags=["invoice"],
            metadata={"tenant_id": "t-118", "attempt": 2},
        )

        events = adapt("generic_email", body)

        assert [event.recipient for event in events] == ["a@b.example", "c@d.example"]
        assert events[0].metadata == {"tenant_id": "t-118", "attempt": "2"}
        assert events[0].suppressions == (Suppression(Cause.BOUNCED),)

    @pytest.mark.parametrize("kind", list(EmailKind))
    def test_knows_every_kind(self, kind: EmailKind) -> None:
        (event,) = adapt("generic_email", self.body(f"email.{kind}", recipient="a@b.example"))

        assert event.kind is kind

    def test_another_type_is_unwanted(self) -> None:
        with pytest.raises(Unwanted):
            adapt("generic_email", self.body("email.exploded", recipient="a@b.example"))

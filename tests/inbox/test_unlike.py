"""Events unlike the providers' samples: each adapter says of them that they are unwanted or unreadable."""

import json
from typing import Any

import pytest

from app.inbox.providers import get_provider
from app.inbox.providers.payloads import Posted, Unreadable, Unwanted
from tests.conformance.webhook_samples import changed, document

LONG = f"{'a' * 320}@example.com"


def adapt(provider: str, body: Any) -> list[Any]:
    return get_provider(provider).adapt(json.dumps(body).encode())


def notification(**values: Any) -> Any:
    """A notification of SES whose event has other values."""
    envelope = document("ses", "Bounce")
    return envelope | {"Message": json.dumps(json.loads(envelope["Message"]) | values)}


class TestAdapters:
    @pytest.mark.parametrize(
        ("provider", "body"),
        [
            ("auth0", changed("auth0", "user.created", type="connection.created")),
            ("logto", changed("logto", "User.Created", event="Role.Created")),
            ("stytch", changed("stytch", "direct.member.create", object_type="session")),
            ("stytch", changed("stytch", "direct.member.create", action="LOOK")),
            ("resend", {"type": "contact.updated", "data": {"email": "a@b.example"}}),
            ("resend", {"type": "contact.deleted", "data": {"unsubscribed": True}}),
            ("ses", notification(eventType="Exploded")),
            ("ses", notification(eventType="Subscription", subscription={})),
            ("postmark", {"RecordType": "Inbound"}),
            ("postmark", changed("postmark", "Bounce.HardBounce", Type="AutoResponder")),
        ],
    )
    def test_want_nothing_that_is_about_something_else(self, provider, body):
        with pytest.raises(Unwanted):
            adapt(provider, body)

    @pytest.mark.parametrize(
        ("provider", "body", "fault"),
        [
            ("resend", changed("resend", "email.sent", data__to=[]), "data.to is missing"),
            ("resend", changed("resend", "email.sent", data__to=[LONG]), "longer than 320"),
            ("postmark", changed("postmark", "Delivery", Recipient=LONG), "longer than 320"),
            ("postmark", changed("postmark", "Delivery", Recipient=""), "recipient is missing"),
            ("postmark", changed("postmark", "Delivery", Recipient=7), "recipient is missing"),
        ],
    )
    def test_say_what_they_cannot_read(self, provider, body, fault):
        with pytest.raises(Unreadable, match=fault):
            adapt(provider, body)


class TestKeys:
    def test_of_postmark_are_made_of_what_an_event_without_id_says(self):
        split = get_provider("postmark").split
        body = document("postmark", "Open")
        posted = Posted(json.dumps(body).encode())
        another = Posted(json.dumps(body | {"Recipient": "c@d.example"}).encode())

        (first,) = split(posted, "delivery-1")
        (again,) = split(posted, "delivery-2")
        (other,) = split(another, "delivery-1")

        assert first.external_id == again.external_id != other.external_id

    def test_of_postmark_are_the_deliverys_where_the_event_is_of_no_known_type(self):
        (delivery,) = get_provider("postmark").split(
            Posted(b'{"RecordType": "New", "ID": 7}'), "delivery-1"
        )

        assert delivery.external_id == "delivery-1"

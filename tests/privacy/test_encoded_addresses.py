"""A person's address is erased in plain text, in JSON and percent-encoded."""

import gzip
import json
from base64 import b64encode
from urllib.parse import quote, quote_plus

import pytest

from app.inbox.models import WebhookEvent
from app.inbox.providers import EMAIL
from tests.factories import create_tenant, create_user, platform_token
from tests.inbox.sending import all_rows
from tests.privacy.life import AT
from tests.privacy.test_erasure import erase

ADDRESS = "ada.o'brien+x=41@example.com"
MARK = "markedtext"


def escaped(text: str, digits: str = "04x") -> str:
    return "".join(f"\\u{ord(character):{digits}}" for character in text)


ENCODINGS = {
    "plain": str,
    "upper case": str.upper,
    "JSON": lambda text: text.replace("@", "\\u0040"),
    "JSON, all of it": escaped,
    "JSON, upper case": lambda text: escaped(text.upper(), "04X"),
    "JSON in JSON": lambda text: json.dumps(json.dumps({"to": text.replace("@", "\\u0040")})),
    "a JSON path": lambda text: f"https:\\/\\/example.com\\/{text}\\/",
    "percent": lambda text: quote(text, safe=""),
    "percent, lower case": lambda text: quote(text, safe="").lower(),
    "percent, all of it": lambda text: "".join(f"%{ord(one):02X}" for one in text),
    "percent, twice": lambda text: quote(quote(text, safe=""), safe=""),
    "form": lambda text: f"a=b&email={quote_plus(text)}&c=d",
}


@pytest.fixture
def person(app):
    return create_user(create_tenant(), email=ADDRESS)


class TestErasure:
    def test_removes_every_text_about_others_that_contains_the_address(
        self, app, api, sender, dump, person
    ):
        marks = [f"{MARK}{number}." for number in range(len(ENCODINGS))]
        for mark, (name, encode) in zip(marks, ENCODINGS.items(), strict=True):
            text = f"{mark} {encode(ADDRESS)}"
            self._store_in_the_trail_and_an_answer(api, text, name)
            self._store_in_the_inbox_and_mails(sender, text, name)
        stored = dump().splitlines()

        erase(app, str(person.id))

        left = [line for line in dump().splitlines() if MARK in line]
        assert left == []
        for mark in marks:
            assert {line.split()[0] for line in stored if mark in line} >= {
                "audit_events", "idempotency_keys", "webhook_events", "email_events",
                "email_messages",
            }, mark  # fmt: skip

    def _store_in_the_trail_and_an_answer(self, api, text, name):
        other = create_user(create_tenant())
        for number, patches in enumerate([{"note": [text], text: 1}, {"note": None, text: None}]):
            answer = api.patch(
                f"/v1/users/{other.id}/meta_data",
                token=platform_token(),
                json={"patches": patches},
                headers={"Idempotency-Key": f"{name} {number}"},
            )
            assert answer.status_code == 200, answer.get_data(as_text=True)

    def _store_in_the_inbox_and_mails(self, sender, text, name):
        for number in range(2):
            data = {
                "recipient": "other@example.com",
                "message_id": f"{text} {number}",
                "reason": text,
                "response": text,
                "url": text,
                "tags": [text],
                "metadata": {"who": text},
            }
            body = {"type": "email.delivered", "timestamp": AT, "data": data}
            options = {"receiver": EMAIL, "message_id": f"{name} {number}"}
            row = sender.deliver("standard_webhooks", body, **options)
            assert row.status == "succeeded", row.detail

    def test_empties_a_body_that_mentions_the_person_or_cannot_be_read(self, app, sender, person):
        bodies = {
            "form": f"email={quote_plus(ADDRESS)}".encode(),
            "half a document": f'{{"email": "{ADDRESS}"'.encode(),
            "base 64": b64encode(ADDRESS.encode()),
            "UTF-16": json.dumps({"email": ADDRESS}).encode("utf-16"),
            "gzip": gzip.compress(ADDRESS.encode()),
            "JSON escapes": f'{{"email": "{escaped(ADDRESS)}"}}'.encode(),
            "a repeated key": f'{{"email": "{ADDRESS}", "email": "a@example.com"}}'.encode(),
            "SNS": json.dumps({"Message": json.dumps({"to": escaped(ADDRESS)})}).encode(),
        }
        digests = {
            name: sender.deliver("standard_webhooks", body, message_id=name).digest
            for name, body in bodies.items()
        }

        erase(app, str(person.id))

        for event in all_rows(WebhookEvent):
            kept = (None, {}, digests.pop(event.external_id))
            assert (event.body, event.headers, event.digest) == kept, event.external_id
        assert digests == {}

    def test_keeps_a_readable_body_about_somebody_else(self, app, sender, person):
        body = b'{"type": "other", "email": "some\\u0062ody%40example.com"}'
        sender.deliver("standard_webhooks", body, message_id="other")

        erase(app, str(person.id))

        (event,) = all_rows(WebhookEvent)
        assert event.body == body

"""The recorded requests of the providers, posted to the receivers, and what their events leave.

They are read from beside this file, or from the folder named by ``CONFORMANCE_DIR``. Left out:
verdicts on which the providers' own packages differ, and Kinde's body that is a JWT.
"""

import json
from typing import Any

import pytest
from werkzeug.test import TestResponse

from app.emails.events import STATES
from app.emails.models import EmailEventRecord, EmailMessage, Suppression
from app.identity_sync.events import Change, IdentityEvent
from app.inbox import providers as receivers
from app.inbox.providers import Receiver, get_provider
from app.inbox.providers.payloads import Unwanted, digest
from app.inbox.signatures.proof import SignatureInvalid
from app.inbox.signatures.sns import Certificates
from app.memberships.models import Membership
from app.tenants.models import Tenant
from app.users.models import User
from tests.conformance.webhook_samples import EMAIL, IDENTITY, expected_events, sample, sample_files
from tests.conformance.webhook_vectors import (
    Vector,
    body,
    load_billing_vectors,
    load_vectors,
    scheme_text,
    verdict,
)
from tests.inbox.sending import Sender, all_events, all_rows, event_row, work_off

VECTORS = {vector["name"]: vector for vector in load_vectors()}
BILLING = {vector["name"]: vector for vector in load_billing_vectors()}


def receiver_of(provider: str) -> Receiver:
    return receivers.EMAIL if provider in EMAIL else receivers.IDENTITY


def post(sender: Sender, vector: Vector) -> TestResponse:
    """Post a recorded request to a receiver that is configured for it, at its moment."""
    receiver = receiver_of(vector["provider"])
    certificates = Certificates(lambda url: _recorded_certificate(vector, url))
    sender.configure({receiver: scheme_text(vector)}, certificates=certificates)
    sender.set_clock(vector["now"])
    return sender.post_raw(body(vector), vector["headers"], receiver=receiver)


def _recorded_certificate(vector: Vector, url: str) -> bytes:
    try:
        pem: str = vector.get("certificates", {})[url]
    except KeyError:
        raise SignatureInvalid("not recorded") from None
    return pem.encode()


class TestVectors:
    @pytest.mark.parametrize("name", VECTORS)
    def test_get_their_recorded_verdict(self, sender, name):
        vector = VECTORS[name]
        if vector.get("replay_of") in VECTORS:
            assert post(sender, VECTORS[vector["replay_of"]]).status_code == 200
        stored_before = len(all_events())

        answer = post(sender, vector)

        stored = len(all_events()) - stored_before
        if verdict(vector) == "invalid":
            assert (answer.status_code, stored) == (401, 0)
            return
        assert answer.status_code == 200
        answered = answer.get_json()
        assert answered["status"] == "accepted"
        assert answered["duplicate"] is bool(vector.get("replay_of"))
        assert stored == (0 if vector.get("replay_of") else len(_ids(answered)))
        if vector.get("event_id") and vector["scheme"] != "github-sha256":  # that id is not signed
            assert event_row(answered["event_id"]).external_id == vector["event_id"]


def _ids(answered: dict[str, Any]) -> set[str]:
    return set(answered.get("event_ids") or [answered["event_id"]])


class TestBillingVectors:
    @pytest.mark.parametrize("name", BILLING)
    def test_get_their_recorded_verdict(self, sender, name):
        vector = BILLING[name]
        receiver = receivers.RECEIVERS[vector["provider"]]
        secrets = vector.get("secrets") or [vector["secret"]]
        sender.configure({receiver: " ".join(f"{receiver.preset}:{one}" for one in secrets)})
        sender.set_clock(vector["now"])
        raw = vector["body"].encode()

        answer = sender.post_raw(raw, vector["headers"], receiver=receiver)

        assert answer.status_code == (200 if vector["valid"] else 401), vector["why"]
        stored = all_events()
        assert len(stored) == vector["valid"]
        if vector["valid"]:
            event = json.loads(raw)
            ids = (event.get("id"), event.get("event_id"), vector["headers"].get("webhook-id"))
            assert stored[0].external_id == next(filter(None, ids), digest(raw))
            assert (stored[0].source, stored[0].body) == (vector["provider"], raw)


class TestIdentitySamples:
    """All samples of a provider, in the order of their file names, which is nobody's order."""

    @pytest.fixture(params=IDENTITY)
    def told(self, request, sender) -> list[IdentityEvent]:
        """Deliver them; what they say, in the order it happened."""
        provider, events = request.param, []
        for name in sample_files(provider):
            row = deliver(sender, provider, name)
            try:
                events += get_provider(provider).adapt(sample(provider, name))
            except Unwanted:
                assert row.status == "ignored"
            else:
                assert row.status in ("succeeded", "ignored"), (name, row.detail)
        return sorted(events, key=lambda event: event.position)

    def test_make_each_organization_a_tenant(self, told):
        expected = _last_words(told, "OrganizationEvent", ("name",))

        shown = {t.idp_org_id: (t.is_active, t.name) for t in all_rows(Tenant)}
        assert shown == {key: (exists, said["name"]) for key, (exists, said) in expected.items()}

    def test_make_each_person_a_user_of_their_tenants(self, told):
        expected = _last_words(told, "UserEvent", ("email", "first_name", "last_name", "active"))

        shown = {u.idp_user_id: u for u in all_rows(User)}
        assert shown.keys() == expected.keys()
        for key, (exists, said) in expected.items():
            user = shown[key]
            assert user.is_active is (exists and said.get("active", True))
            for name in ("email", "first_name", "last_name"):
                assert getattr(user, name) == said.get(name, "")

    def test_make_each_place_a_membership(self, told):
        expected = _last_words(told, "MembershipEvent", ("organization_id", "user_id", "active"))
        people = _last_words(told, "UserEvent", ())

        users = {user.id: user.idp_user_id for user in all_rows(User)}
        shown = {(m.idp_org_id, users[m.user_id]): m.is_active for m in all_rows(Membership)}
        assert shown == {
            (said["organization_id"], said["user_id"]): (
                exists and said.get("active", True) and people[said["user_id"]][0]
            )
            for exists, said in expected.values()
        }


def deliver(sender: Sender, provider: str, name: str) -> Any:
    return sender.deliver(
        provider, sample(provider, name), receiver=receiver_of(provider), message_id=f"msg_{name}"
    )


def _last_words(
    told: list[IdentityEvent], kind: str, names: tuple[str, ...]
) -> dict[str, tuple[bool, dict[str, Any]]]:
    """Object -> whether it exists in the end, and what was said of it last."""
    found: dict[str, tuple[bool, dict[str, Any]]] = {}
    for event in told:
        if type(event).__name__ == kind:
            said = dict(found.get(event.object_id, (True, {}))[1])
            said |= {n: getattr(event, n) for n in names if getattr(event, n) is not None}
            found[event.object_id] = (event.change is not Change.DELETED, said)
    return found


ANYMAIL_KINDS = {
    "queued": {"sent"},
    "sent": {"sent"},
    "bounced": {"bounced", "soft_bounced", "rejected"},
    "subscribed": {"resubscribed"},
    "failed": {"rejected"},
    "unknown": {"scheduled", "rejected", "deferred", "unsubscribed", "resubscribed"},
}
CASES = [(p, name) for p in EMAIL for name in sample_files(p) if not name.startswith("sns.")]


class TestEmailSamples:
    @pytest.mark.parametrize(("provider", "name"), CASES)
    def test_are_stored_as_anymail_reads_them(self, sender, provider, name):
        self.post(sender, provider, name)

        stored = all_rows(EmailEventRecord)
        expected = _distinct(expected_events(provider)[name])
        if {event["event_type"] for event in expected} == {"unknown"} and not stored:
            assert {event.status for event in all_events()} == {"ignored"}
            return
        assert {event.status for event in all_events()} <= {"succeeded", "ignored"}
        assert len(stored) == len(expected)
        for judged in expected:
            kinds = ANYMAIL_KINDS.get(judged["event_type"], {judged["event_type"]})
            found = [row for row in stored if row.recipient == judged["recipient"]]
            stored.remove(next(row for row in found if row.kind in kinds))

    @pytest.mark.parametrize("provider", EMAIL)
    def test_leave_the_highest_state_and_the_suppressions(self, sender, provider):
        for served, name in CASES:
            if served == provider:
                self.post(sender, provider, name)

        events = all_rows(EmailEventRecord)
        for message in all_rows(EmailMessage):
            of_message = [row for row in events if row.message_id == message.message_id]
            kinds = {row.kind for row in of_message}
            states = [state for state in STATES if state.value in kinds]
            assert message.state == (states[-1].value if states else "unknown")
            assert message.opens == sum(row.kind == "opened" for row in of_message)
            assert message.clicks == sum(row.kind == "clicked" for row in of_message)
        listed = {row.cause for row in all_rows(Suppression, is_active=True)}
        assert {"bounced", "complained"} & listed == {"bounced", "complained"} & {
            row.kind for row in events
        } - _lifted(events)

    @staticmethod
    def post(sender: Sender, provider: str, name: str) -> None:
        """Through the receiver; SendGrid's and SES's signatures are the vectors' affair."""
        preset = provider if provider in ("resend", "mailgun", "postmark") else "standard_webhooks"
        answer = sender.post(
            preset, sample(provider, name), receiver=receivers.EMAIL, message_id=f"msg_{name}"
        )
        assert answer.status_code == 200
        work_off(sender.app)


def _distinct(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each event once, by its provider's id."""
    found = {event["event_id"] or number: event for number, event in enumerate(events)}
    return list(found.values())


def _lifted(events: list[EmailEventRecord]) -> set[str]:
    """Postmark's reactivation also ends a bounce."""
    rejoined = any(row.kind == "resubscribed" and row.source == "postmark" for row in events)
    return {"bounced"} if rejoined else set()

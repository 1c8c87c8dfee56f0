"""The receivers: what is stored, what is answered, and that nothing is stored twice."""

import json
import time

import pytest
from redis import Redis

from app import create_app
from app.core.http import body_limits
from app.core.jobs.queues import Queue, queue_named
from app.inbox.providers import EMAIL, IDENTITY, RECEIVERS, Receiver
from app.inbox.providers.payloads import digest
from app.inbox.receiving import PROCESS_EVENTS
from app.inbox.signatures.sending import sign
from tests.conformance.webhook_samples import document, sample
from tests.inbox.sending import SECRETS, Sender, all_events, event_row, work_off
from tests.messages import sent_messages

TOPIC = "arn:aws:sns:eu-west-1:123456789012:ses-events"
WORKOS_USER = document("workos", "user.created")


def pad(body, size):
    """The same body, larger by so many bytes."""
    overhead = len(', "padding": ""')
    return {**body, "padding": "x" * (size - overhead)}


class TestAccepted:
    def test_answers_with_the_id_of_the_stored_event(self, app, sender):
        answer = sender.post("workos", WORKOS_USER)

        assert answer.status_code == 200
        body = answer.get_json()
        row = event_row(body["event_id"])
        assert body == {"status": "accepted", "event_id": str(row.id), "duplicate": False}
        assert (row.source, row.external_id) == ("workos", WORKOS_USER["id"])
        assert (row.event_type, row.status) == ("user.created", "pending")
        assert json.loads(row.body) == WORKOS_USER

    def test_keeps_the_raw_bytes(self, app, sender):
        raw = b'{"type": "x",\t"data": "\\u00e9\xc3\xa9"}\r\n'

        answer = sender.post("standard_webhooks", raw)

        assert event_row(answer.get_json()["event_id"]).body == raw

    def test_answers_a_duplicate_with_the_same_id_and_changes_nothing(self, app, sender):
        first = sender.post("workos", WORKOS_USER).get_json()
        work_off(app)
        before = event_row(first["event_id"])

        second = sender.post("workos", WORKOS_USER, now=time.time() + 60)

        assert second.status_code == 200
        assert second.get_json() == {**first, "duplicate": True}
        assert len(all_events()) == 1
        assert event_row(first["event_id"]).version == before.version

    def test_notifies_the_worker_also_of_a_duplicate_that_is_still_pending(
        self, app, environment, sender
    ):
        """Whoever stored it may have lost its connection before it could notify."""
        redis = Redis.from_url(environment["REDIS_URL"])
        for _ in range(2):
            sender.post("workos", WORKOS_USER)

            (job,) = queue_named(Queue.WEBHOOKS, redis).jobs
            assert (job.func_name, list(job.args)) == (PROCESS_EVENTS, [])
            redis.flushdb()

    def test_stores_an_unreadable_body_behind_a_good_signature_as_failed(self, app, sender):
        answer = sender.post("standard_webhooks", b"\xff not json")

        row = event_row(answer.get_json()["event_id"])
        assert answer.status_code == 200
        assert answer.get_json()["duplicate"] is False
        assert (row.status, row.body) == ("failed", b"\xff not json")
        assert "JSON" in row.detail

    def test_reads_the_body_whatever_its_content_type(self, sender):
        raw = sample("workos", "user.created")

        answer = sender.post("workos", raw, headers={"Content-Type": "text/plain"})

        assert answer.status_code == 200

    def test_keeps_no_secret_of_the_headers(self, app, sender):
        event_id = sender.post(
            "auth0", document("auth0", "user.created"), headers={"X-Custom-Key": "hush"}
        ).get_json()["event_id"]

        headers = event_row(event_id).headers
        assert headers["content-type"] == "application/json"
        assert headers["authorization"] == headers["x-custom-key"] == "[redacted]"

    def test_a_delivery_id_that_is_not_signed_does_not_make_a_replay_another_event(
        self, app, sender
    ):
        body = {"type": "x", "data": {}}

        first, second = (
            sender.post("github", body, message_id=message_id).get_json()
            for message_id in ("msg_1", "msg_2")
        )

        assert second == {**first, "duplicate": True}
        assert event_row(first["event_id"]).external_id == digest(json.dumps(body).encode())

    def test_the_receivers_tell_their_deliveries_apart(self, app, sender):
        body = {"type": "x", "data": {}}

        answers = [
            sender.post("standard_webhooks", body, receiver=receiver, message_id="msg_1").get_json()
            for receiver in (IDENTITY, EMAIL)
        ]

        assert [answer["duplicate"] for answer in answers] == [False, False]
        assert {row.source for row in all_events()} == {"generic", "generic_email"}


class TestBatches:
    def test_are_duplicates_when_all_their_events_are(self, app, sender):
        self.trust(sender)
        events = document("sendgrid", "batch.mixed_out_of_order_with_duplicate")
        first = self.post(sender, json.dumps(events[:2]).encode()).get_json()

        again = self.post(sender, json.dumps(events[1:2]).encode()).get_json()
        more = self.post(sender, json.dumps(events).encode()).get_json()

        assert again == {**first, "event_ids": first["event_ids"][1:], "duplicate": True}
        assert more["duplicate"] is False
        assert len(all_events()) == 3

    def test_may_be_empty(self, sender):
        self.trust(sender)

        answer = self.post(sender, b"[]")

        assert answer.get_json() == {"status": "accepted", "event_ids": [], "duplicate": False}

    def test_of_thousands_are_stored_and_notified_of_once(self, app, environment, sender):
        self.trust(sender)
        event = {"event": "open", "email": "a@b.example", "timestamp": 1767606305}
        events = json.dumps([{**event, "sg_event_id": f"e{n}"} for n in range(5000)]).encode()

        with sent_messages() as messages:
            answer = self.post(sender, events)
        queue = queue_named(Queue.WEBHOOKS, Redis.from_url(environment["REDIS_URL"]))
        queued = queue.count
        with sent_messages() as again_messages:
            again = self.post(sender, events)

        assert len(set(answer.get_json()["event_ids"])) == len(all_events()) == 5000
        assert queued == 1
        assert messages == ["webhook_events.store", "COMMIT"]
        assert again.get_json() == {**answer.get_json(), "duplicate": True}
        assert len(again_messages) == 3

    def test_beyond_fifty_thousand_events_are_one_row_that_has_failed(self, app, sender):
        self.trust(sender)

        answer = self.post(sender, b"[%b]" % b",".join([b"{}"] * 50_001))

        assert answer.status_code == 200
        (row,) = all_events()
        assert (row.status, row.detail) == ("failed", "more than 50000 events")

    @staticmethod
    def trust(sender: Sender) -> None:
        """Take SendGrid's form from a sender whom Postmark's credential proves."""
        sender.configure({EMAIL: f"standard_webhooks:{SECRETS['standard_webhooks']}"})

    @staticmethod
    def post(sender: Sender, raw: bytes):
        return sender.post("standard_webhooks", raw, receiver=EMAIL)


class TestMailgunTokens:
    def test_are_taken_once(self, app, sender):
        opened = document("mailgun", "opened")
        signed = sender.post("mailgun", opened, receiver=EMAIL)
        stored = json.loads(all_events()[0].body)
        forged = {**stored, "event-data": {**stored["event-data"], "id": "forged"}}

        answer = sender.post_raw(json.dumps(forged).encode(), {}, receiver=EMAIL)

        assert answer.status_code == 200
        assert answer.get_json() == {**signed.get_json(), "duplicate": True}
        assert len(all_events()) == 1


class TestRefused:
    def test_a_bad_signature_is_one_generic_401_and_stores_nothing(self, app, sender):
        answers = [
            sender.post_raw(b"{}", {}),
            sender.post_raw(b"{}", {"WorkOS-Signature": "t=1, v1=00"}),
            sender.post("workos", WORKOS_USER, now=time.time() - 3600),
        ]

        assert {answer.status_code for answer in answers} == {401}
        assert {answer.get_data() for answer in answers} == {b'{"detail":"Not authenticated"}'}
        assert all(answer.headers["WWW-Authenticate"] == "Bearer" for answer in answers)
        assert all_events() == []

    def test_without_a_secret_it_is_503(self, app, sender):
        sender.configure({IDENTITY: ""})

        answer = sender.post("workos", WORKOS_USER)

        assert answer.status_code == 503
        assert answer.get_json()["code"] == "webhook_secret_missing"
        assert "Retry-After" in answer.headers

    def test_a_body_with_the_signature_inside_is_413_beyond_256_kibibytes(self, app, sender):
        event = document("mailgun", "opened")
        sizes, receiver = (256 * 1024, 256 * 1024 + 1), EMAIL
        least = len(sign("mailgun", SECRETS["mailgun"], json.dumps(event).encode(), 1e9).body)

        answers = [
            sender.post("mailgun", pad(event, size - least), receiver=receiver) for size in sizes
        ]

        assert [answer.status_code for answer in answers] == [200, 413]
        assert [len(row.body) for row in all_events()] == [256 * 1024]

    def test_a_body_of_an_unknown_sender_is_not_parsed_beyond_256_kibibytes(self, sender):
        nested = b"[" * (5 * 1024 * 1024)
        sender.configure({EMAIL: f"mailgun:key ses:{TOPIC} resend:{SECRETS['resend']}"})

        answer = sender.post_raw(nested, {}, receiver=EMAIL)

        assert answer.status_code == 413
        assert list(answer.get_json()) == ["detail"]
        assert "at most 262144 bytes" in answer.get_json()["detail"]

    @pytest.mark.parametrize(
        ("secrets", "limit"),
        [
            ("mailgun:key", 256 * 1024),
            (f"mailgun:key ses:{TOPIC}", 256 * 1024),
            ("mailgun:key postmark:user:password", 5 * 1024 * 1024),
            ("", 5 * 1024 * 1024),
        ],
    )
    def test_the_server_reads_what_a_configured_sender_may_send(
        self, environment, monkeypatch, secrets, limit
    ):
        path = EMAIL.path
        monkeypatch.setitem(body_limits._LARGER, path, body_limits.body_limit(path))

        create_app({**environment, "EMAIL_WEBHOOK_SECRETS": secrets})

        assert body_limits.body_limit(path) == limit


class TestBillingReceivers:
    """One for each provider, with its own secrets."""

    @pytest.fixture(params=["stripe", "paddle", "chargebee", "lemonsqueezy", "polar"])
    def receiver(self, request, app) -> Receiver:
        return RECEIVERS[request.param]

    @staticmethod
    def trust(sender: Sender, receiver: Receiver) -> None:
        """Give the receiver two secrets, of which the second is used."""
        other = f"{receiver.preset}:other:secret"
        sender.configure({receiver: f"{other} {receiver.preset}:{SECRETS[receiver.preset]}"})

    def test_store_the_event_of_their_provider(self, sender, receiver):
        self.trust(sender, receiver)

        answer = sender.post(receiver.preset, {"type": "x"}, receiver=receiver)

        assert answer.status_code == 200
        (row,) = all_events()
        assert (row.source, row.status) == (receiver.name, "pending")
        assert answer.get_json() == {
            "status": "accepted",
            "event_id": str(row.id),
            "duplicate": False,
        }

    def test_answer_401_for_another_secret_and_for_another_body(self, sender, receiver):
        sender.configure({receiver: f"{receiver.preset}:other:secret"})

        answers = [
            sender.post(receiver.preset, {"type": "x"}, receiver=receiver),
            sender.post_raw(b"{}", {}, receiver=receiver),
        ]

        assert [answer.status_code for answer in answers] == [401, 401]
        assert all_events() == []

    def test_take_five_mebibytes_and_no_more(self, sender, receiver):
        self.trust(sender, receiver)

        answers = [
            sender.post(
                receiver.preset, b"%b%b" % (b"{}", b" " * (size - 2)), receiver=receiver
            ).status_code
            for size in (5 * 1024 * 1024, 5 * 1024 * 1024 + 1)
        ]

        assert answers == [200, 413]

    def test_do_not_take_the_secret_of_another_receiver(self, sender, receiver):
        sender.configure({IDENTITY: f"{receiver.preset}:{SECRETS[receiver.preset]}"})

        answer = sender.post(receiver.preset, {"type": "x"}, receiver=receiver)

        assert answer.status_code == 503

    def test_are_not_there_for_an_unknown_provider(self, app):
        answer = app.test_client().post("/webhooks/billing/braintree", data=b"{}")

        assert answer.status_code == 404
        assert answer.get_json()["code"] == "provider_not_found"

    def test_read_their_secrets_from_their_settings(self, environment, receiver):
        secret = SECRETS[receiver.preset]
        settings = {receiver.setting.upper(): f"other:secret {secret}"}
        configured = create_app({**environment, **settings})
        signed = sign(receiver.preset, secret, b'{"type": "x"}', time.time())

        answer = configured.test_client().post(
            receiver.path, data=signed.body, headers=signed.headers
        )

        assert answer.status_code == 200


class TestConfiguration:
    def test_a_fault_names_the_setting_and_not_its_value(self, environment):
        from app.config import ConfigError

        with pytest.raises(ConfigError) as fault:
            create_app(
                {**environment, "IDP_WEBHOOK_SECRETS": "nope:hush", "EMAIL_WEBHOOK_SECRETS": "hush"}
            )

        assert "IDP_WEBHOOK_SECRETS" in str(fault.value)
        assert "EMAIL_WEBHOOK_SECRETS" in str(fault.value)
        assert "hush" not in str(fault.value)

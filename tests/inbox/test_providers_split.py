"""Inbox rows of a request: which provider, how many, under which keys."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.inbox.providers import EMAIL, IDENTITY, choose, get_provider
from app.inbox.providers.payloads import Posted, Unreadable, Unwanted, digest
from tests.conformance.webhook_samples import document, sample, sample_files

RECEIVERS = {
    **dict.fromkeys(["workos", "clerk", "logto", "auth0", "stytch"], IDENTITY),
    **dict.fromkeys(["resend", "sendgrid", "mailgun", "postmark", "ses"], EMAIL),
}
SAMPLES = [(provider, name) for provider in RECEIVERS for name in sample_files(provider)]
ALL = [provider.name for receiver in (IDENTITY, EMAIL) for provider in receiver.providers]


def keys(provider: str, raw: bytes, message_id: str | None = None) -> list[str]:
    return [row.external_id for row in get_provider(provider).split(Posted(raw), message_id)]


class TestChoose:
    @pytest.mark.parametrize(("provider", "name"), SAMPLES)
    def test_recognises_every_sample_by_its_form(self, provider: str, name: str) -> None:
        found = choose(RECEIVERS[provider], None, Posted(sample(provider, name)))

        assert found.name == provider

    def test_believes_the_signature_before_the_form(self) -> None:
        found = choose(IDENTITY, "logto", Posted(sample("workos", "user.created")))

        assert found.name == "logto"

    def test_reads_a_provider_of_the_other_receiver_as_generic(self) -> None:
        found = choose(EMAIL, "workos", Posted(sample("workos", "user.created")))

        assert found.name == "generic_email"

    @pytest.mark.parametrize("raw", [b"", b"\xff", b"{}", b"5", b'{"type": "user.created"}'])
    def test_falls_back_to_the_generic_form(self, raw: bytes) -> None:
        assert choose(IDENTITY, None, Posted(raw)).name == "generic"
        assert choose(EMAIL, None, Posted(raw)).name == "generic_email"

    def test_does_not_take_another_object_named_event_for_clerks(self) -> None:
        raw = b'{"id": "evt_1", "object": "event", "type": "x", "data": {"object": {"id": "s"}}}'

        assert choose(IDENTITY, None, Posted(raw)).name == "generic"


class TestKeys:
    @pytest.mark.parametrize(("provider", "name"), SAMPLES)
    def test_are_stable_bounded_and_one_per_event(self, provider: str, name: str) -> None:
        raw = sample(provider, name)

        first, second = keys(provider, raw, "msg_1"), keys(provider, raw, "msg_1")

        assert first == second
        assert all(0 < len(key) <= 255 for key in first)

    def test_workos_and_auth0_and_mailgun_number_their_events(self) -> None:
        workos = sample("workos", "user.created")
        auth0 = sample("auth0", "user.created")
        mailgun = sample("mailgun", "opened")

        assert keys("workos", workos, "msg_1") == ["event_011BHKZ8TEMRH99B49D7Z5Y3AX"]
        assert keys("auth0", auth0) == ["evt_WIBcW8EUXH0sI9QIWLiiud"]
        assert keys("mailgun", mailgun) == ["8o9TlVLx92CANUHDaVtqCG"]

    @pytest.mark.parametrize("provider", ["clerk", "stytch", "resend", "generic"])
    def test_svix_numbers_the_deliveries_of_the_others(self, provider: str) -> None:
        raw = b'{"type": "user.created", "event_id": "e", "id": "i"}'

        assert keys(provider, raw, "msg_1") == ["msg_1"]

    def test_without_a_delivery_id_the_events_own_counts(self) -> None:
        assert keys("generic", b'{"id": "evt_1"}') == ["evt_1"]
        assert keys("stytch", b'{"event_id": "e"}') == ["e"]

    def test_logto_has_the_digest_of_the_body(self) -> None:
        raw = sample("logto", "User.Created")

        assert keys("logto", raw) == [digest(raw)]

    def test_postmark_has_ids_for_bounces_and_composite_keys_for_the_rest(self) -> None:
        bounce = keys("postmark", sample("postmark", "Bounce.HardBounce"))
        click = keys("postmark", sample("postmark", "Click"))

        assert bounce == ["Bounce:4323372036854776"]
        assert click == [
            "Click:1f6e89a4-d023-4309-b1e9-998922b2b352:k.nilsson@fjord.example"
            ":2026-01-05T09:55:05Z:https://pay.ledgerly.example/i/2026-0142"
        ]

    def test_postmark_tells_two_links_of_one_message_apart(self) -> None:
        click = document("postmark", "Click")
        other = click | {"OriginalLink": "https://pay.ledgerly.example/terms?" + "x" * 300}

        first, second = (keys("postmark", json.dumps(c).encode()) for c in (click, other))

        assert first != second
        assert len(second[0]) <= 255


class TestBatches:
    def test_are_one_row_per_event_and_the_same_event_has_the_same_key(self) -> None:
        rows = get_provider("sendgrid").split(
            Posted(sample("sendgrid", "batch.mixed_out_of_order_with_duplicate")), None
        )

        assert [row.event_type for row in rows] == ["open", "delivered", "processed", "delivered"]
        assert rows[1].external_id == rows[3].external_id
        assert len({row.external_id for row in rows}) == 3

    def test_keep_the_good_events_beside_a_bad_one(self) -> None:
        good = document("sendgrid", "open")[0]

        rows = get_provider("sendgrid").split(Posted(json.dumps([good, 5, {}]).encode()), None)

        assert [bool(row.error) for row in rows] == [False, True, False]
        assert all(row.external_id for row in rows)


DEEP = b"[" * 100_000
HUGE = b'{"id": ' + b"9" * 5_000 + b"}"


class TestHostileBodies:
    @pytest.mark.parametrize("provider", ALL)
    @pytest.mark.parametrize("raw", [b"", b"\xff\xfe", b"null", b"NaN", b'"x"', DEEP, HUGE])
    def test_are_kept_as_unreadable(self, provider: str, raw: bytes) -> None:
        (row,) = get_provider(provider).split(Posted(raw), None)

        assert row.error
        assert row.external_id == digest(raw)

    @pytest.mark.parametrize("provider", ALL)
    def test_an_id_too_long_for_a_key_becomes_its_digest(self, provider: str) -> None:
        (row,) = get_provider(provider).split(Posted(b"\xff"), "m" * 10_000)

        assert row.external_id.startswith("sha256:")

    @settings(max_examples=60, deadline=None)
    @given(st.data())
    def test_never_raise_anything_else(self, data: st.DataObject) -> None:
        provider, name = data.draw(st.sampled_from(SAMPLES))
        value = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just({})
        posted = Posted(json.dumps(_spoiled(document(provider, name), data, value)).encode())

        for row in choose(RECEIVERS[provider], provider, posted).split(posted, "msg_1"):
            if not row.error:
                try:
                    get_provider(provider).adapt(row.body)
                except (Unreadable, Unwanted):
                    continue


def _spoiled(document: object, data: st.DataObject, value: st.SearchStrategy[object]) -> object:
    """The document with one member, at any depth, replaced."""
    if isinstance(document, dict) and document and data.draw(st.booleans()):
        name = data.draw(st.sampled_from(sorted(document)))
        return document | {name: _spoiled(document[name], data, value)}
    if isinstance(document, list) and document:
        return [_spoiled(document[0], data, value)]
    return data.draw(value | st.lists(value, max_size=2))

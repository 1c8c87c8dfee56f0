"""What identity events mean: each provider's samples, and the traps in each provider's forms."""

import json
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from app.identity_sync.events import (
    Change,
    UserEvent,
)
from app.inbox.providers import get_provider
from app.inbox.providers.payloads import Unreadable, Unwanted
from tests.conformance.webhook_samples import changed, document, sample, sample_files

IDENTITY = ["workos", "clerk", "logto", "auth0", "stytch"]
# What each sample says, without what an event leaves unsaid; null: it is unwanted.
SAID = json.loads(Path(__file__).with_name("identity_samples.json").read_text())
SAMPLES = [(provider, name) for provider in IDENTITY for name in sample_files(provider)]


def adapt(provider: str, body: Any) -> list[Any]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return list(get_provider(provider).adapt(raw))


def adapt_changed(provider: str, name: str, **values: Any) -> Any:
    """The one event of a sample with other values."""
    (event,) = adapt(provider, changed(provider, name, **values))
    return event


def adapt_sample(provider: str, name: str) -> Any:
    """The one event of a sample that holds one."""
    (event,) = adapt(provider, sample(provider, name))
    return event


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def said(event: Any) -> dict[str, Any]:
    """What an event says: the fields that are not left at their defaults."""
    values = {field.name: getattr(event, field.name) for field in fields(event)}
    unsaid = {field.name for field in fields(event) if values[field.name] == field.default}
    return {"event": type(event).__name__, **{n: v for n, v in values.items() if n not in unsaid}}


class TestEverySample:
    @pytest.mark.parametrize(("provider", "name"), SAMPLES)
    def test_says_what_is_recorded(self, provider: str, name: str) -> None:
        try:
            events = adapt(provider, sample(provider, name))
        except Unwanted:
            found = None
        else:
            found = json.loads(json.dumps([said(event) for event in events], default=str))

        assert found == SAID[provider][name]

    @pytest.mark.parametrize(
        ("provider", "name"), [case for case in SAMPLES if "elete" in case[1].lower()]
    )
    def test_of_a_deletion_comes_after_every_other_of_its_object(
        self, provider: str, name: str
    ) -> None:
        others = [
            event
            for other, events in SAID[provider].items()
            if events and other != name
            for event in adapt(provider, sample(provider, other))
        ]
        for deletion in adapt(provider, sample(provider, name)):
            history = [
                event
                for event in others
                if type(event) is type(deletion) and event.object_id == deletion.object_id
            ]
            assert deletion.change is Change.DELETED
            assert history
            assert all(deletion.position > event.position for event in history)


# A sample with other values, and what its event says then.
CHANGED: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "all roles count": (
        "workos", "organization_membership.updated",
        {"data__roles": [{"slug": "admin"}, {"slug": "billing"}]}, {"roles": ("admin", "billing")},
    ),
    "a user without an address has an empty one": (
        "clerk", "user.created", {"data__email_addresses": []}, {"email": ""},
    ),
    "an address that is still being verified is not verified": (
        "clerk", "user.created", {"data__email_addresses__0__verification": None},
        {"email_verified": False},
    ),
    "an address taken away is not a verified one": (
        "logto", "User.Data.Updated", {"data__primaryEmail": None},
        {"email": "", "email_verified": None},
    ),
    "a banned user is not active": (
        "clerk", "user.updated", {"data__banned": True}, {"active": False},
    ),
    "a time in seconds is read as such": (
        "clerk", "user.created", {"timestamp": 1716883200},
        {"occurred_at": datetime(2024, 5, 28, 8, tzinfo=UTC)},
    ),
    "given and family name count before the full one": (
        "auth0", "user.created",
        {"data__object__given_name": "Jiří Karel", "data__object__family_name": "Novák"},
        {"first_name": "Jiří Karel", "last_name": "Novák"},
    ),
    "an address in place of the name is no name": (
        "auth0", "user.created", {"data__object__name": "jiri.novak@kestrel.example"},
        {"first_name": "", "last_name": ""},
    ),
    "a blocked user is not active": (
        "auth0", "user.updated", {"data__object__blocked": True}, {"active": False},
    ),
    "a deleted user was deleted when it says": (
        "auth0", "user.deleted", {}, {"position": (1767645305123000, 2, 1767645305123000)},
    ),
    "an answer that is not the user says nothing of the user": (
        "logto", "User.Data.Updated", {"data": {"id": "other", "primaryEmail": "x@y.example"}},
        {"object_id": "oemhlgekttlz4bzyjdwbb", "email": None},
    ),
    "a name is taken from the profile where it has one": (
        "logto", "User.Created", {"data__profile": {"familyName": "Lovelace"}},
        {"first_name": "", "last_name": "Lovelace"},
    ),
    "the id is found wherever a route puts it": (
        "logto", "User.Deleted", {"params": {}, "data": None, "userId": "u7"}, {"object_id": "u7"},
    ),
}  # fmt: skip
GENERIC: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "a full name is parted": (
        "user.updated", {"id": "u1", "name": "Ægir Þór Jónsson"},
        {"first_name": "Ægir", "last_name": "Þór Jónsson"},
    ),
    "a membership without id is known by what it connects": (
        "membership.created", {"organization_id": "o1", "user_id": "u1", "role": "admin"},
        {"object_id": "o1 u1", "membership_id": "", "roles": ("admin",)},
    ),
    "a membership with id is deleted by it alone": (
        "membership.deleted", {"id": "m1"},
        {"object_id": "m1", "organization_id": None, "user_id": None},
    ),
}  # fmt: skip


class TestChangedSample:
    @pytest.mark.parametrize("rule", CHANGED)
    def test_says_something_else(self, rule: str) -> None:
        provider, name, values, expected = CHANGED[rule]

        event = adapt_changed(provider, name, **values)

        assert {name: getattr(event, name) for name in expected} == expected


class TestWorkOS:
    def test_a_null_name_is_empty_and_a_missing_one_not_said(self) -> None:
        body = document("workos", "user.created")
        body["data"]["first_name"] = None
        del body["data"]["last_name"]

        (event,) = adapt("workos", body)

        assert (event.first_name, event.last_name) == ("", None)

    @pytest.mark.parametrize("path", [("data", "id"), ("created_at",), ("data", "user_id")])
    def test_without_an_id_or_a_time_it_cannot_be_read(self, path: tuple[str, ...]) -> None:
        body = document("workos", "organization_membership.created")
        holder = body if len(path) == 1 else body["data"]
        del holder[path[-1]]

        with pytest.raises(Unreadable, match=path[-1]):
            adapt("workos", body)


class TestClerk:
    def test_a_user_has_the_primary_address(self) -> None:
        body = document("clerk", "user.created")
        other = {"id": "idn_other", "email_address": "other@acier.example"}
        body["data"]["email_addresses"].insert(0, other)

        assert adapt("clerk", body) == [adapt_sample("clerk", "user.created")]

    def test_a_deletion_in_whole_seconds_comes_after_an_update_in_that_second(self) -> None:
        update = adapt_changed("clerk", "user.updated", data__updated_at=1767654305_900)
        deletion = adapt_changed("clerk", "user.deleted", timestamp=1767654305)

        assert deletion.position > update.position
        assert deletion.occurred_at - update.version < timedelta(seconds=1)


class TestLogto:
    def test_a_sign_up_tells_of_the_user_too(self) -> None:
        created = document("logto", "User.Created")
        body = {
            "event": "PostRegister",
            "hookId": "h",
            "createdAt": created["createdAt"],
            "userId": created["data"]["id"],
            "user": created["data"],
        }

        (event,) = adapt("logto", body)

        assert event == adapt_sample("logto", "User.Created")

    def test_each_person_added_and_removed_is_one_event(self) -> None:
        removed = {"removedUserIds": ["gone1", "gone2"]}
        events = adapt("logto", changed("logto", "Organization.Membership.Updated", **removed))

        assert [(event.user_id, event.change) for event in events] == [
            ("oemhlgekttlz4bzyjdwbb", Change.CREATED),
            ("gone1", Change.DELETED),
            ("gone2", Change.DELETED),
        ]
        assert {event.organization_id for event in events} == {"dewtkzmldpjs"}

    def test_without_lists_the_removal_of_one_member_is_understood(self) -> None:
        body = document("logto", "Organization.Membership.Updated")
        del body["addedUserIds"], body["organizationId"]
        body |= {"method": "DELETE", "params": {"id": "dewtkzmldpjs", "userId": "u1"}}

        (event,) = adapt("logto", body)

        assert (event.organization_id, event.user_id) == ("dewtkzmldpjs", "u1")
        assert event.change is Change.DELETED

    def test_without_lists_anything_else_cannot_be_read(self) -> None:
        body = document("logto", "Organization.Membership.Updated")
        del body["addedUserIds"]

        with pytest.raises(Unreadable):
            adapt("logto", body)


class TestStytch:
    def test_an_invited_member_has_no_access_yet(self) -> None:
        invited = changed("stytch", "direct.member.create", member__status="invited")
        user, membership = adapt("stytch", invited)

        assert (user.active, membership.active) == (True, False)

    def test_an_address_has_a_flag(self) -> None:
        verified = changed("stytch", "direct.member.create", member__email_address_verified=True)
        user, _ = adapt("stytch", verified)

        assert user.email_verified is True


class TestGeneric:
    def body(self, type_: str, **data: Any) -> dict[str, Any]:
        return {"type": type_, "timestamp": "2026-01-05T09:45:05.123Z", "data": data}

    def test_says_only_what_it_holds(self) -> None:
        (event,) = adapt("generic", self.body("user.updated", id="u1", email="a@b.example"))

        assert event == UserEvent(
            object_id="u1",
            change=Change.UPDATED,
            occurred_at=at("2026-01-05T09:45:05.123Z"),
            email="a@b.example",
        )

    @pytest.mark.parametrize("rule", GENERIC)
    def test_follows(self, rule: str) -> None:
        type_, data, expected = GENERIC[rule]

        (event,) = adapt("generic", self.body(type_, **data))

        assert {name: getattr(event, name) for name in expected} == expected

    @pytest.mark.parametrize("body", [{}, {"type": 5}, {"type": "user.renamed"}, {"data": 1}])
    def test_another_type_is_unwanted(self, body: dict[str, Any]) -> None:
        with pytest.raises(Unwanted):
            adapt("generic", body)


class TestTextThatCannotBeStored:
    def test_becomes_the_replacement_character(self) -> None:
        raw = (
            b'{"type": "user.created", "timestamp": "2026-01-05T09:45:05Z",'
            b' "data": {"id": "u\\u0000", "email": "a\\ud800@b.example", "name": "\\ud83d\\ude00 x"}}'
        )

        (event,) = adapt("generic", raw)

        assert (event.object_id, event.email) == ("u\ufffd", "a\ufffd@b.example")
        assert event.first_name == "😀"

    def test_an_id_longer_than_a_key_cannot_be_read(self) -> None:
        with pytest.raises(Unreadable, match="longer"):
            adapt_changed("workos", "user.created", data__id="u" * 256)

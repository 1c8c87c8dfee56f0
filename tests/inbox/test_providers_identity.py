"""What identity events mean: each provider's samples, and the traps in each provider's forms."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.identity_sync.events import (
    Change,
    MembershipEvent,
    OrganizationEvent,
    RoleGrantEvent,
    UserEvent,
)
from app.inbox.providers import get_provider
from app.inbox.providers.payloads import Unreadable, Unwanted
from tests.conformance.webhook_samples import changed, document, sample, sample_files

IDENTITY = ["workos", "clerk", "logto", "auth0", "stytch"]
UNWANTED = {
    "invitation.accepted",
    "organization_domain.verified",
    "organizationInvitation.accepted",
    "organizationInvitation.created",
    "organizationInvitation.revoked",
}


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


def samples() -> list[tuple[str, str]]:
    return [(provider, name) for provider in IDENTITY for name in sample_files(provider)]


class TestEverySample:
    @pytest.mark.parametrize(("provider", "name"), samples())
    def test_is_understood_or_unwanted(self, provider: str, name: str) -> None:
        if name in UNWANTED:
            with pytest.raises(Unwanted):
                adapt(provider, sample(provider, name))
            return

        events = adapt(provider, sample(provider, name))

        assert events
        assert all(event.object_id and event.occurred_at.tzinfo for event in events)

    @pytest.mark.parametrize(
        ("provider", "name"), [case for case in samples() if "elete" in case[1].lower()]
    )
    def test_of_a_deletion_comes_after_every_other_of_its_object(
        self, provider: str, name: str
    ) -> None:
        deletions = adapt(provider, sample(provider, name))

        others = [
            event
            for other in sample_files(provider)
            if other not in UNWANTED and other != name
            for event in adapt(provider, sample(provider, other))
        ]
        for deletion in deletions:
            history = [
                event
                for event in others
                if type(event) is type(deletion) and event.object_id == deletion.object_id
            ]
            assert deletion.change is Change.DELETED
            assert history
            assert all(deletion.position > event.position for event in history)


class TestWorkOS:
    def test_an_organization_has_a_name(self) -> None:
        event = adapt_sample("workos", "organization.created")

        assert event == OrganizationEvent(
            object_id="org_01WRJD8T6V88KDXQNAK5K37PSQ",
            change=Change.CREATED,
            occurred_at=at("2026-01-05T09:45:05.154Z"),
            version=at("2026-01-05T09:45:05.123Z"),
            name="Northwind Labs",
        )

    def test_a_user_has_names_and_an_address(self) -> None:
        event = adapt_sample("workos", "user.updated")

        assert event == UserEvent(
            object_id="user_01MRQQ0FPEVZ3TQ2MYXYRHSQ0X",
            change=Change.UPDATED,
            occurred_at=at("2026-01-05T10:05:05.178Z"),
            version=at("2026-01-05T10:05:05.123Z"),
            email="zoe.angstrom@northwind-labs.example",
            first_name="Zoë",
            last_name="Ångström-Berg",
        )

    def test_a_pending_membership_is_not_active(self) -> None:
        event = adapt_sample("workos", "organization_membership.created")

        assert event == MembershipEvent(
            object_id="om_012K6DA49NJNV812ZG1H4B053H",
            change=Change.CREATED,
            occurred_at=at("2026-01-05T09:50:05.132Z"),
            version=at("2026-01-05T09:50:05.123Z"),
            membership_id="om_012K6DA49NJNV812ZG1H4B053H",
            organization_id="org_01WRJD8T6V88KDXQNAK5K37PSQ",
            user_id="user_01MRQQ0FPEVZ3TQ2MYXYRHSQ0X",
            roles=("member",),
            active=False,
        )

    def test_a_deletion_is_placed_by_the_event_not_by_the_old_version_it_repeats(self) -> None:
        updated = adapt_sample("workos", "user.updated")
        deleted = adapt_sample("workos", "user.deleted")

        assert deleted.version == updated.version
        assert deleted.position > updated.position

    def test_a_null_name_is_empty_and_a_missing_one_not_said(self) -> None:
        body = document("workos", "user.created")
        body["data"]["first_name"] = None
        del body["data"]["last_name"]

        (event,) = adapt("workos", body)

        assert (event.first_name, event.last_name) == ("", None)

    def test_all_roles_count(self) -> None:
        roles = [{"slug": "admin"}, {"slug": "billing"}]
        event = adapt_changed("workos", "organization_membership.updated", data__roles=roles)

        assert event.roles == ("admin", "billing")

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

        (event,) = adapt("clerk", body)

        assert event == UserEvent(
            object_id="user_3DErW8BSTnbZP1hFl5jxpCGbjlE",
            change=Change.CREATED,
            occurred_at=at("2026-01-05T09:45:05.183Z"),
            version=at("2026-01-05T09:45:05.144Z"),
            email="renée.dubois@acier.example",
            first_name="Renée",
            last_name="Dubois",
            active=True,
        )

    def test_a_user_without_an_address_has_an_empty_one(self) -> None:
        event = adapt_changed("clerk", "user.created", data__email_addresses=[])

        assert event.email == ""

    def test_a_banned_user_is_not_active(self) -> None:
        event = adapt_changed("clerk", "user.updated", data__banned=True)

        assert event.active is False

    def test_a_deletion_says_the_id_alone(self) -> None:
        event = adapt_sample("clerk", "user.deleted")

        assert event == UserEvent(
            object_id="user_3DErW8BSTnbZP1hFl5jxpCGbjlE",
            change=Change.DELETED,
            occurred_at=at("2026-01-05T23:05:05.123Z"),
        )

    def test_a_membership_connects_the_nested_objects(self) -> None:
        event = adapt_sample("clerk", "organizationMembership.updated")

        assert event == MembershipEvent(
            object_id="orgmem_3ivNkE5APCgnSjMmLgo4EPl5P13",
            change=Change.UPDATED,
            occurred_at=at("2026-01-05T10:20:05.125Z"),
            version=at("2026-01-05T10:20:05.123Z"),
            membership_id="orgmem_3ivNkE5APCgnSjMmLgo4EPl5P13",
            organization_id="org_3yOVW2Xu823dNzfGoTIpZBLw3g0",
            user_id="user_3DErW8BSTnbZP1hFl5jxpCGbjlE",
            roles=("org:admin",),
        )

    def test_a_time_in_seconds_is_read_as_such(self) -> None:
        event = adapt_changed("clerk", "user.created", timestamp=1716883200)

        assert event.occurred_at == datetime(2024, 5, 28, 8, tzinfo=UTC)

    def test_a_deletion_in_whole_seconds_comes_after_an_update_in_that_second(self) -> None:
        update = adapt_changed("clerk", "user.updated", data__updated_at=1767654305_900)
        deletion = adapt_changed("clerk", "user.deleted", timestamp=1767654305)

        assert deletion.position > update.position
        assert deletion.occurred_at - update.version < timedelta(seconds=1)


class TestAuth0:
    def test_a_user_without_given_name_is_parted_from_the_full_one(self) -> None:
        event = adapt_sample("auth0", "user.created")

        assert event == UserEvent(
            object_id="auth0|4c54aa6a2acda7ffb5a65d13",
            change=Change.CREATED,
            occurred_at=at("2026-01-05T09:45:05.130Z"),
            version=at("2026-01-05T09:45:05.123Z"),
            email="jiri.novak@kestrel.example",
            first_name="Jiří",
            last_name="Novák",
            active=True,
        )

    def test_given_and_family_name_count_before_the_full_one(self) -> None:
        names = {"data__object__given_name": "Jiří Karel", "data__object__family_name": "Novák"}
        event = adapt_changed("auth0", "user.created", **names)

        assert (event.first_name, event.last_name) == ("Jiří Karel", "Novák")

    def test_an_address_in_place_of_the_name_is_no_name(self) -> None:
        body = document("auth0", "user.created")
        body["data"]["object"]["name"] = body["data"]["object"]["email"]

        (event,) = adapt("auth0", body)

        assert (event.first_name, event.last_name) == ("", "")

    def test_a_blocked_user_is_not_active(self) -> None:
        event = adapt_changed("auth0", "user.updated", data__object__blocked=True)

        assert event.active is False

    def test_a_deleted_user_was_deleted_when_it_says(self) -> None:
        event = adapt_sample("auth0", "user.deleted")

        assert event.position == (1767645305123000, 2, 1767645305123000)

    def test_an_organization_shows_its_display_name(self) -> None:
        event = adapt_sample("auth0", "organization.updated")

        assert (event.name, event.slug, event.version) == ("Kestrel Air Česko", "kestrel-air", None)

    def test_a_member_is_known_by_organization_and_user(self) -> None:
        added = adapt_sample("auth0", "organization.member.added")
        deleted = adapt_sample("auth0", "organization.member.deleted")

        assert added.object_id == deleted.object_id
        assert (added.change, deleted.change) == (Change.CREATED, Change.DELETED)
        assert (added.membership_id, added.roles) == ("", None)

    def test_a_role_is_granted_and_withdrawn_on_its_own(self) -> None:
        granted = adapt_sample("auth0", "organization.member.role.assigned")
        withdrawn = adapt_sample("auth0", "organization.member.role.deleted")

        assert granted == RoleGrantEvent(
            object_id="org_2r7dNFz10JYigGKs auth0|4c54aa6a2acda7ffb5a65d13",
            change=Change.CREATED,
            occurred_at=at("2026-01-05T09:53:05.123Z"),
            organization_id="org_2r7dNFz10JYigGKs",
            user_id="auth0|4c54aa6a2acda7ffb5a65d13",
            role_id="rol_LNVC4SSlyqObR4gJ",
            role="billing-admin",
        )
        assert withdrawn.change is Change.DELETED
        assert withdrawn.position > granted.position


class TestLogto:
    def test_a_user_is_parted_from_the_full_name(self) -> None:
        event = adapt_sample("logto", "User.Data.Updated")

        assert event == UserEvent(
            object_id="oemhlgekttlz4bzyjdwbb",
            change=Change.UPDATED,
            occurred_at=at("2026-01-05T09:54:05.123Z"),
            version=at("2026-01-05T09:54:05.103Z"),
            email="m.okafor@lagoon.example",
            first_name="Mọ́remí",
            last_name="Okafor-Bello",
            active=True,
        )

    def test_a_suspended_user_is_not_active(self) -> None:
        assert adapt_sample("logto", "User.SuspensionStatus.Updated").active is False

    def test_a_deletion_has_its_id_in_the_path(self) -> None:
        event = adapt_sample("logto", "User.Deleted")

        assert event == UserEvent(
            object_id="oemhlgekttlz4bzyjdwbb",
            change=Change.DELETED,
            occurred_at=at("2026-01-05T14:45:05.123Z"),
        )

    def test_an_answer_that_is_not_the_user_says_nothing_of_the_user(self) -> None:
        other = {"id": "someone else", "primaryEmail": "x@y.example"}
        event = adapt_changed("logto", "User.Data.Updated", data=other)

        assert (event.object_id, event.email) == ("oemhlgekttlz4bzyjdwbb", None)

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
    def test_a_member_is_a_person_and_a_membership(self) -> None:
        user, membership = adapt("stytch", sample("stytch", "direct.member.create"))

        member_id = "member-test-dd1fdc3c-1119-41c4-865f-6b52df25bbca"
        assert user == UserEvent(
            object_id=member_id,
            change=Change.CREATED,
            occurred_at=at("2026-01-05T09:45:06Z"),
            version=at("2026-01-05T09:45:05Z"),
            email="l.petrov@birch.example",
            first_name="Лев",
            last_name="Петров",
            active=True,
        )
        assert membership == MembershipEvent(
            object_id=member_id,
            change=Change.CREATED,
            occurred_at=at("2026-01-05T09:45:06Z"),
            version=at("2026-01-05T09:45:05Z"),
            membership_id=member_id,
            organization_id="organization-test-ab5e1786-7d1a-4485-9e96-7f9bd8a444f6",
            user_id=member_id,
            roles=("member",),
            active=True,
        )

    def test_a_member_deleted_by_status_is_updated_and_not_active(self) -> None:
        user, membership = adapt("stytch", sample("stytch", "scim.member.update"))

        assert (user.change, user.active) == (Change.UPDATED, False)
        assert (membership.change, membership.active) == (Change.UPDATED, False)

    def test_an_invited_member_has_no_access_yet(self) -> None:
        invited = changed("stytch", "direct.member.create", member__status="invited")
        user, membership = adapt("stytch", invited)

        assert (user.active, membership.active) == (True, False)

    def test_a_deletion_by_id_alone_says_no_organization(self) -> None:
        user, membership = adapt("stytch", sample("stytch", "dashboard.member.delete"))

        assert user.change is membership.change is Change.DELETED
        assert membership.organization_id is None
        assert membership.user_id == user.object_id


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

    def test_a_full_name_is_parted(self) -> None:
        (event,) = adapt("generic", self.body("user.updated", id="u1", name="Ægir Þór Jónsson"))

        assert (event.first_name, event.last_name) == ("Ægir", "Þór Jónsson")

    def test_a_membership_without_id_is_known_by_what_it_connects(self) -> None:
        body = self.body("membership.created", organization_id="o1", user_id="u1", role="admin")

        (event,) = adapt("generic", body)

        assert (event.object_id, event.membership_id) == ("o1 u1", "")
        assert event.roles == ("admin",)

    def test_a_membership_with_id_is_deleted_by_it_alone(self) -> None:
        (event,) = adapt("generic", self.body("membership.deleted", id="m1"))

        assert (event.object_id, event.organization_id, event.user_id) == ("m1", None, None)

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


class TestPosition:
    def test_prefers_deleted_to_updated_to_created_at_one_moment(self) -> None:
        moment = at("2026-01-05T09:45:05Z")
        positions = [
            UserEvent(object_id="u", change=change, occurred_at=moment).position
            for change in (Change.CREATED, Change.UPDATED, Change.DELETED)
        ]

        assert positions == sorted(set(positions))

    def test_prefers_the_objects_version_to_the_events_time(self) -> None:
        early, late = at("2026-01-05T09:00:00Z"), at("2026-01-05T10:00:00Z")
        older = UserEvent(object_id="u", change=Change.UPDATED, occurred_at=late, version=early)
        newer = UserEvent(object_id="u", change=Change.UPDATED, occurred_at=early, version=late)

        assert newer.position > older.position

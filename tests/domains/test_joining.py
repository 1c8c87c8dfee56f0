"""Who joins by a verified domain: by events, by sweeps, and by an admin's decision."""

from functools import partial
from time import sleep

import pytest

from app.audit.models import AuditEvent
from app.core.actors import SYSTEM_IDP
from app.core.db import retries, tenancy
from app.domains import joining
from app.domains.models import JoinRequest
from app.events.models import OutboxEvent
from app.identity_sync.events import (
    Change,
    MembershipEvent,
    OrganizationEvent,
    membership_key,
)
from app.memberships.models import Membership
from app.users.models import User
from tests import database
from tests.concurrency import at_once
from tests.domains.conftest import AT
from tests.factories import (
    create_api_key,
    create_domain,
    create_join_request,
    create_limits,
    create_member,
    create_membership,
    create_tenant,
    create_user,
    limit_flag,
)
from tests.scim.directory import Directory, create_connection

PATH = "/v1/join-requests"


def members():
    found = database.query(
        "SELECT u.idp_user_id, m.role FROM memberships m JOIN users u ON u.id = m.user_id"
        " WHERE m.is_active ORDER BY u.idp_user_id"
    )
    return [tuple(one) for one in found]


def requests():
    return [(one.idp_user_id, one.state) for one in database.rows(JoinRequest)]


class TestEvents:
    def test_auto_makes_a_member(self, tell, verified, tenant):
        domain = verified(join="auto", join_role="viewer")

        tell("ada", first_name="Ada", last_name="Lovelace")

        user = database.row(User)
        assert members() == [("ada", "viewer")]
        assert (user.email, user.first_name, user.created_by_user_id) == (
            "ada@example.com",
            "Ada",
            "system:idp",
        )
        request = database.row(JoinRequest)
        assert (request.state, request.user_id, request.domain) == (
            "accepted",
            user.id,
            domain.name,
        )
        types = [event.type for event in database.rows(OutboxEvent)]
        assert sorted(types) == ["join_request.accepted", "membership.created", "user.created"]

    def test_suggest_makes_a_request(self, tell, verified):
        verified(join="suggest")

        tell("ada", first_name="Ada")
        tell("ada", change=Change.UPDATED, last_name="King", occurred_at=AT.replace(hour=10))

        assert members() == []
        assert requests() == [("ada", "pending")]

    @pytest.mark.parametrize(
        "values",
        [
            {"email_verified": False},
            {"email_verified": None},
            {"active": False},
            {"email": "ada@sub.example.com"},
            {"email": "ada@example.com.evil.org"},
            {"email": "ada@evil-example.com"},
            {"email": "ada"},
            {"email": ""},
        ],
    )
    def test_other_people_do_not_join(self, tell, verified, values):
        verified(join="auto")

        tell("ada", **values)

        assert (members(), requests()) == ([], [])

    def test_an_address_that_changed_counts_when_it_is_verified(self, tell, verified):
        verified(join="auto")
        at = [AT.replace(hour=hour) for hour in (9, 10, 11)]
        tell(email="ada@example.org", occurred_at=at[0])
        tell(email="ada@example.com", email_verified=None, change=Change.UPDATED, occurred_at=at[1])
        before = members()

        tell(email=None, email_verified=True, change=Change.UPDATED, occurred_at=at[2])

        assert (before, members()) == ([], [("ada", "member")])

    @pytest.mark.parametrize("state", ["pending", "failed", "lapsed"])
    def test_only_by_a_verified_domain(self, tell, tenant, state):
        create_domain(tenant, name="example.com", state=state, join="auto")

        tell("ada")

        assert (members(), requests()) == ([], [])

    def test_an_international_name_in_any_form(self, tell, verified):
        verified("xn--bcher-kva.example.com", join="auto")

        tell("ada", email="ada@BÜCHER.example.com")
        tell("bob", email="bob@xn--bcher-kva.example.com")

        assert [name for name, _ in members()] == ["ada", "bob"]

    def test_of_a_domain_and_its_subdomain_the_longer_counts(self, tell, verified):
        other = create_tenant()
        verified("example.com", join="auto", include_subdomains=True)
        verified("eu.example.com", of=other, join="suggest")

        for name, email in (("a", "a@us.example.com"), ("b", "b@eu.example.com")):
            tell(name, email=email)
        tell("c", email="c@de.eu.example.com")

        assert [name for name, _ in members()] == ["a", "c"]
        assert [
            (one.tenant_id, one.idp_user_id) for one in database.rows(JoinRequest, state="pending")
        ] == [(other.id, "b")]

    @pytest.mark.parametrize(
        "told",
        [
            {"email": "ada@example.org"},
            {"email_verified": False},
            {"email": None, "active": False},
            {"email": None, "change": Change.DELETED},
        ],
    )
    def test_a_suggestion_ends_with_the_verified_address(self, tell, verified, told):
        verified(join="suggest")
        tell("ada")
        tell("bob")

        tell("ada", **{"change": Change.UPDATED, "occurred_at": AT.replace(hour=10), **told})

        assert requests() == [("bob", "pending")]

    def test_a_suggestion_follows_to_another_address_of_the_domain(self, tell, verified):
        verified(join="suggest")
        tell("ada")

        email = "ada.king@example.com"
        tell("ada", email=email, change=Change.UPDATED, occurred_at=AT.replace(hour=10))

        assert [(one.email, one.state) for one in database.rows(JoinRequest)] == [
            (email, "pending")
        ]

    @pytest.mark.parametrize("ends", ["deleted", "off", "lapsed"])
    def test_a_domain_that_ends_meanwhile_lets_nobody_in(
        self, app, api, admin, tenant, verified, ends
    ):
        known = verified(join="auto")
        path = f"/v1/domains/{known.id}"
        if ends == "deleted":
            assert api.delete(path, token=admin).status_code == 204
        elif ends == "off":
            assert api.patch(path, token=admin, json={"join": "off"}).status_code == 200
        else:
            database.execute("UPDATE domains SET state = 'lapsed'")

        def admit():
            tenancy.enter(tenancy.PLATFORM)
            joining.admit_to(known, joining.Newcomer("ada", "ada@example.com"), actor=SYSTEM_IDP)

        with app.app_context():
            retries.run(admit)

        assert requests() == []
        assert ("ada", "member") not in members()

    def test_not_in_a_suspended_tenant(self, tell, verified):
        verified(of=create_tenant(is_active=False), join="auto")

        tell("ada")

        assert (members(), requests()) == ([], [])

    def test_who_was_a_member_or_is_inactive_stays_out(self, tell, verified, tenant):
        verified(join="auto")
        left = create_user(tenant, idp_user_id="left", email="left@example.com")
        create_membership(tenant, left, "admin", is_active=False)
        create_user(tenant, idp_user_id="gone", email="gone@example.com", is_active=False)

        tell("left")
        tell("gone")

        assert (members(), requests()) == ([], [])

    def test_who_was_declined_is_not_suggested_again(self, tell, verified, tenant):
        verified(join="auto")
        create_join_request(tenant, idp_user_id="ada", state="declined")

        tell("ada")

        assert members() == []

    def test_a_membership_of_the_provider_is_the_same_member(self, tell, verified, tenant):
        verified(join="auto")
        tell("ada")
        later = AT.replace(hour=10)
        org = tenant.idp_org_id

        tell(
            "ada",
            OrganizationEvent(object_id=org, change=Change.CREATED, occurred_at=later, name="Acme"),
            MembershipEvent(
                object_id=membership_key(org, "ada"),
                change=Change.CREATED,
                occurred_at=later,
                organization_id=org,
                user_id="ada",
                roles=("admin",),
            ),
        )

        assert members() == [("ada", "admin")]


class TestSeats:
    @pytest.fixture
    def tenant(self, app):
        create_limits("free", limit_flag("seats", 2))
        return create_tenant()

    @pytest.mark.parametrize("has_user", [True, False])
    def test_the_invited_persons_own_is_free_for_them(self, api, tell, verified, tenant, has_user):
        verified(join="auto")
        owner = create_member(tenant, "owner")[2]
        if has_user:
            create_user(tenant, idp_user_id="ada", email="ada@example.com")
        invited = {"email": "Ada@example.com", "role": "member"}
        assert api.post("/v1/invitations", token=owner, json=invited).status_code == 201

        tell("bob")
        tell("ada")

        assert sorted(requests()) == [("ada", "accepted"), ("bob", "pending")]
        count = "SELECT count_seats(CAST(:id AS uuid))"
        assert database.query(count, id=str(tenant.id))[0][0] == 2

    def test_20_at_once_on_2_seats(self, tell, verified, tenant):
        verified(join="auto")

        at_once([partial(tell, f"u{number}") for number in range(8)])

        assert len(members()) == 2
        assert sorted(state for _, state in requests()) == ["accepted"] * 2 + ["pending"] * 6

    def test_accepting_needs_one(self, api, verified, tenant):
        owner = create_member(tenant, "owner")[2]
        create_member(tenant)
        request = create_join_request(tenant)

        answer = api.post(f"{PATH}/{request.id}/accept", token=owner)

        assert (answer.status_code, answer.json["code"]) == (409, "seat_limit")
        assert requests()[0][1] == "pending"


class TestDecisions:
    def test_accept_makes_a_member_with_the_role_of_the_domain(self, api, admin, tenant, verified):
        verified(join_role="viewer")
        request = create_join_request(tenant, idp_user_id="ada", first_name="Ada")

        first = api.post(f"{PATH}/{request.id}/accept", token=admin)
        again = api.post(f"{PATH}/{request.id}/accept", token=admin)

        assert (first.status_code, again.status_code) == (200, 200)
        user = database.row(User, idp_user_id="ada")
        assert first.json["data"]["user_id"] == again.json["data"]["user_id"] == str(user.id)
        assert ("ada", "viewer") in members()
        assert len(database.rows(AuditEvent, action="join_request.accepted")) == 1

    def test_decline(self, api, admin, tenant):
        request = create_join_request(tenant)

        answers = [
            api.post(f"{PATH}/{request.id}/{verb}", token=admin)
            for verb in ("decline", "decline", "accept")
        ]

        assert [answer.status_code for answer in answers] == [200, 200, 409]
        assert answers[0].json["data"]["state"] == "declined"
        assert answers[2].json["code"] == "join_request_decided"

    def test_what_was_accepted_is_not_declined(self, api, admin, tenant):
        request = create_join_request(tenant, state="accepted")

        answer = api.post(f"{PATH}/{request.id}/decline", token=admin)

        assert answer.json["code"] == "join_request_decided"

    def test_nobody_accepts_into_a_role_above_their_own(self, api, admin, tenant, verified):
        verified(join_role="owner")
        request = create_join_request(tenant)

        assert api.post(f"{PATH}/{request.id}/accept", token=admin).json["code"] == "role_above_own"

    def test_without_the_domain_the_role_is_member(self, api, admin, tenant):
        request = create_join_request(tenant, idp_user_id="ada")

        api.post(f"{PATH}/{request.id}/accept", token=admin)

        assert ("ada", "member") in members()

    def test_who_became_a_member_meanwhile_stays_as_they_are(self, api, admin, tenant):
        user, membership, _ = create_member(tenant, "billing", idp_user_id="ada")
        request = create_join_request(tenant, idp_user_id="ada")

        answer = api.post(f"{PATH}/{request.id}/accept", token=admin)

        assert answer.json["data"]["user_id"] == str(user.id)
        assert database.row(Membership, id=membership.id).role == "billing"

    def test_another_users_address_is_refused(self, api, admin, tenant):
        create_member(tenant, email="ADA@example.com")
        request = create_join_request(tenant, idp_user_id="ada", email="ada@example.com")

        assert api.post(f"{PATH}/{request.id}/accept", token=admin).json["code"] == "email_taken"

    def test_while_another_request_makes_the_member_it_waits_for_it(
        self, api, admin, tenant, superuser
    ):
        user = create_user(tenant, idp_user_id="ada", email="ada@example.com")
        request = create_join_request(tenant, idp_user_id="ada", email="ada@example.com")
        member = create_membership(tenant, user, "viewer")
        superuser.execute("DELETE FROM memberships WHERE id = %s RETURNING *", [str(member.id)])
        row = superuser.fetchone()
        superuser.connection.commit()
        values = ", ".join(["%s"] * len(row))
        superuser.execute(f"INSERT INTO memberships VALUES ({values})", row)  # not committed yet

        def commit():
            sleep(0.5)
            superuser.connection.commit()

        answer, _ = at_once([partial(api.post, f"{PATH}/{request.id}/accept", token=admin), commit])

        assert (answer.status_code, answer.json["data"]["user_id"]) == (200, str(user.id))
        assert ("ada", "viewer") in members()

    def test_50_accepts_make_one_member(self, api, admin, tenant):
        request = create_join_request(tenant, idp_user_id="ada")

        answers = at_once([partial(api.post, f"{PATH}/{request.id}/accept", token=admin)] * 10)

        assert {answer.status_code for answer in answers} == {200}
        assert len(database.rows(User, idp_user_id="ada")) == 1


class TestSweep:
    @pytest.fixture
    def sweep(self, api, admin):
        return lambda domain, **query: api.post(
            f"/v1/domains/{domain.id}/sweep", token=admin, query_string=query
        )

    def test_takes_in_who_was_known_before(self, tell, verified, sweep):
        for name in ("ada", "bob"):
            tell(name)
        tell("eve", email_verified=False)
        tell("sub", email="sub@eu.example.com")
        tell("other", email="other@example.org")
        domain = verified(join="auto")

        answer = sweep(domain)

        people = answer.json["data"]["people"]
        assert [(one["idp_user_id"], one["state"]) for one in people] == [
            ("ada", "accepted"),
            ("bob", "accepted"),
        ]
        assert [one["created_by_user_id"] == people[0]["updated_by_user_id"] for one in people] == [
            True
        ] * 2
        assert [name for name, role in members() if role == "member"] == ["ada", "bob"]
        assert sweep(domain).json["data"] == {"people": [], "next_after": None}

    def test_a_preview_tells_the_same_and_changes_nothing(self, tell, verified, sweep):
        tell("ada")
        domain = verified(join="auto")
        known = len(database.rows(AuditEvent))

        answer = sweep(domain, preview=True)

        (person,) = answer.json["data"]["people"]
        assert (person["idp_user_id"], person["state"]) == ("ada", "accepted")
        assert requests() == []
        assert len(database.rows(AuditEvent)) == known

    def test_off_takes_nobody_in_and_suggest_suggests(self, api, admin, tell, verified, sweep):
        tell("ada")
        domain = verified()

        off = sweep(domain).json["data"]["people"]
        api.patch(f"/v1/domains/{domain.id}", token=admin, json={"join": "suggest"})
        suggested = sweep(domain).json["data"]["people"]

        assert (off, [one["state"] for one in suggested]) == ([], ["pending"])

    def test_of_subdomains_but_not_those_of_another_tenant(self, tell, verified, sweep):
        for name, email in (
            ("a", "a@example.com"),
            ("b", "b@eu.example.com"),
            ("c", "c@us.example.com"),
            ("d", "d@example-x.com"),
            ("e", "e@examplee.com"),
        ):
            tell(name, email=email)
        verified("eu.example.com", of=create_tenant())
        domain = verified(join="suggest", include_subdomains=True)

        people = sweep(domain).json["data"]["people"]

        assert [one["idp_user_id"] for one in people] == ["a", "c"]

    def test_in_parts(self, tell, verified, sweep, monkeypatch):
        for number in range(103):
            tell(f"u{number:03}")
        domain = verified(join="suggest")

        first = sweep(domain).json["data"]
        rest = sweep(domain, after=first["next_after"]).json["data"]

        assert (len(first["people"]), len(rest["people"])) == (100, 3)
        assert rest["next_after"] is None

    def test_only_of_a_verified_domain(self, tenant, sweep):
        answer = sweep(create_domain(tenant, join="auto"))

        assert (answer.status_code, answer.json["code"]) == (409, "domain_not_verified")

    def test_needs_the_permission_to_make_members(self, api, tell, verified, tenant):
        tell("ada")
        domain = verified(join="auto")
        key = create_api_key(tenant, ["domains:read", "domains:write"])

        for query in ({}, {"preview": True}):
            path = f"/v1/domains/{domain.id}/sweep"
            answer = api.post(path, token=key, query_string=query)
            assert (answer.status_code, answer.json["code"]) == (403, "permission_denied")
            assert "ada" not in answer.text

    def test_into_a_role_above_ones_own_is_refused(self, tell, verified, sweep):
        tell("ada")

        answer = sweep(verified(join="auto", join_role="owner"))

        assert (answer.status_code, answer.json["code"]) == (403, "role_above_own")
        assert requests() == []

    def test_forgets_who_was_deactivated(self, tell, verified, sweep):
        tell("ada")
        tell("ada", change=Change.DELETED, occurred_at=AT.replace(hour=10), email=None)

        assert sweep(verified(join="auto")).json["data"]["people"] == []


class TestOnePerson:
    """By several ways at once, one user."""

    @pytest.fixture
    def directory(self, app, tenant):
        return Directory(app, create_connection(tenant)[1])

    def test_by_event_sign_in_and_directory(self, app, tell, verified, tenant, directory):
        verified(join="auto")

        def sign_in():
            def work():
                tenancy.enter(tenancy.PLATFORM)
                joining.admit([joining.Newcomer("ada", "ada@example.com")], actor=SYSTEM_IDP)

            with app.app_context():
                retries.run(work)

        def provision():
            emails = [{"value": "ada@example.com"}]
            return directory.add_user("ada@example.com", externalId="ada", emails=emails)

        at_once([partial(tell, "ada"), sign_in, provision, sign_in])

        assert len(database.rows(User)) == 1
        assert members() == [("ada", "member")]

    def test_whom_the_directory_knows_by_another_id(self, app, tell, verified, tenant, directory):
        verified(join="auto")

        def provision():
            emails = [{"value": "ada@example.com"}]
            return directory.add_user("ada.okta", emails=emails)

        at_once([partial(tell, "ada"), provision])

        assert len(database.rows(User)) == 1
        assert len(members()) == 1

"""Create, list, resend and revoke invitations, and the seats that they take."""

import json
from datetime import timedelta

import pytest

from app import create_app
from app.audit.models import AuditEvent
from app.auth.keys import digest_of
from app.core.clock import utcnow
from app.invitations import jobs
from app.invitations.models import Invitation
from tests import database
from tests.concurrency import at_once
from tests.factories import (
    create_api_key,
    create_invitation,
    create_limits,
    create_member,
    create_membership,
    create_tenant,
    create_user,
    limit_flag,
    platform_token,
)
from tests.webhooks.deliveries.receiving import receiver, sender
from tests.webhooks.endpoints.support import create_endpoint

PATH = "/v1/invitations"


@pytest.fixture
def invite(api, admin):
    """Invite an address; the answer."""

    def send(email="ada@example.com", role="member", token=admin, **more):
        return api.post(PATH, token=token, json={"email": email, "role": role, **more})

    return send


@pytest.fixture
def expire():
    """Let every invitation expire."""
    return lambda: database.execute("UPDATE invitations SET expires_at = now()")


def seats(tenant):
    return database.query("SELECT count_seats(CAST(:id AS uuid))", id=str(tenant.id))[0][0]


def code_of(answer):
    return answer.status_code, answer.get_json()["code"]


class TestCreate:
    def test_answers_with_a_token_that_no_table_has(self, invite, tenant):
        created = invite(expires_in_days=30, meta_data={"team": "red"})

        data = created.get_json()["data"]
        stored = database.row(Invitation)
        assert created.status_code == 201
        assert created.headers["Location"] == f"{PATH}/{data['id']}"
        assert data["token"].startswith("inv_")
        assert len(data["token"]) == 47
        assert data["url"] is None
        assert (data["state"], data["source"], data["user_id"]) == ("pending", "api", None)
        assert data["meta_data"] == {"team": "red"}
        assert stored.digest == digest_of(data["token"])
        lasts = stored.expires_at - utcnow()
        assert timedelta(days=29, hours=23) < lasts <= timedelta(days=30)
        (audited,) = database.rows(AuditEvent, action="invitation.created")
        assert not {"digest", "token", "mail_at"} & audited.after.keys()
        assert data["token"] not in str(audited)

    def test_needs_a_key_for_secrets(self, environment, admin):
        without = create_app({**environment, "SECRETS_KEY": ""})
        sent = {"email": "ada@example.com", "role": "member"}

        headers = {"Authorization": f"Bearer {admin}"}
        answer = without.test_client().post(PATH, json=sent, headers=headers)

        assert code_of(answer) == (503, "secrets_key_missing")

    def test_an_address_has_one_pending_invitation(self, invite, tenant, expire):
        invite("ada@example.com")

        assert code_of(invite("ADA@example.com")) == (409, "invitation_exists")
        assert invite("ada@example.com", token=create_member(create_tenant())[2]).status_code == 201
        expire()
        assert invite("ada@example.com").status_code == 201

    def test_of_an_active_member_is_refused(self, invite, tenant):
        user = create_user(tenant, email="ada@example.com")
        membership = create_membership(tenant, user, "viewer")

        assert code_of(invite("Ada@Example.com")) == (409, "already_member")
        database.execute(
            "UPDATE memberships SET is_active = false WHERE id = :id", id=membership.id
        )
        assert invite("ada@example.com").status_code == 201

    def test_of_a_role_above_ones_own_is_refused(self, invite, owner, tenant):
        key = create_api_key(tenant, ["memberships:write"])

        assert code_of(invite(role="owner")) == (403, "role_above_own")
        assert code_of(invite(role="owner", token=key)) == (403, "role_above_own")
        assert invite(role="owner", token=owner).status_code == 201

    def test_by_the_platform_names_the_tenant(self, invite, tenant):
        token = platform_token()

        named = invite(token=token, tenant_id=tenant.slug)

        assert named.get_json()["data"]["tenant_id"] == str(tenant.id)
        assert invite(token=token).status_code == 422
        assert code_of(invite(token=token, tenant_id="unknown")) == (404, "tenant_not_found")

    def test_of_another_tenant_is_refused(self, invite):
        other = create_tenant()

        assert code_of(invite(tenant_id=str(other.id))) == (404, "tenant_not_found")

    @pytest.mark.parametrize(
        "values",
        [
            {"email": "not an address"},
            {"email": "a" * 400 + "@example.com"},
            {"email": None},
            {"email": "ada@example.com\r\nBcc: eve@example.com"},
            {"role": "superadmin"},
            {"expires_in_days": 0},
            {"expires_in_days": 31},
            {"meta_data": []},
            {"meta_data": {"x": "y" * 40_000}},
            {"source": "workos"},
        ],
    )
    def test_refuses_hostile_values(self, api, admin, values):
        sent = {"email": "ada@example.com", "role": "member", **values}

        assert api.post(PATH, token=admin, json=sent).status_code == 422

    def test_is_repeated_without_the_token(self, api, admin):
        sent = {"email": "ada@example.com", "role": "member"}
        options = {"token": admin, "json": sent, "headers": {"Idempotency-Key": "once"}}

        first, second = api.post(PATH, **options), api.post(PATH, **options)

        assert second.status_code == 201
        assert first.get_json()["data"]["id"] == second.get_json()["data"]["id"]
        assert not {"token", "url"} & second.get_json()["data"].keys()


class TestSeats:
    @pytest.fixture
    def limited(self, tenant, admin):
        """The admin has one seat of four."""
        create_limits("free", limit_flag("seats", 4))
        return tenant

    def test_twenty_at_once_take_the_three_that_are_free(self, limited, invite):
        def send(number):
            return lambda: invite(f"person{number}@example.com")

        answers = at_once([send(number) for number in range(20)])

        taken = [one for one in answers if one.status_code == 201]
        refused = [one for one in answers if one.status_code == 409]
        assert (len(taken), len(refused)) == (3, 17)
        assert {one.get_json()["code"] for one in refused} == {"seat_limit"}
        assert seats(limited) == 4

    def test_are_shown_as_used(self, limited, invite, api, admin):
        invite()

        listed = api.get("/v1/usage", token=admin).get_json()["data"]

        assert [one["used"] for one in listed if one["feature"] == "seats"] == [2]

    def test_are_free_again_when_it_ends(self, limited, invite, api, admin, expire):
        ids = [invite(f"{n}@example.com").get_json()["data"]["id"] for n in range(3)]

        assert code_of(invite("late@example.com")) == (409, "seat_limit")
        api.delete(f"{PATH}/{ids[0]}", token=admin)
        assert invite("late@example.com").status_code == 201
        expire()
        assert seats(limited) == 1

    def test_are_counted_by_memberships_too(self, limited, invite, api, admin):
        for number in range(3):
            invite(f"{number}@example.com")
        user = create_user(limited)

        answer = api.post(
            "/v1/memberships/tenant",
            token=admin,
            json={"user_id": str(user.id), "role": "member"},
        )

        assert code_of(answer) == (409, "seat_limit")

    def test_the_invited_persons_own_is_free_for_them(self, limited, invite, api, admin):
        for number in range(3):
            invite(f"{number}@example.com")
        user = create_user(limited, email="2@example.com")

        answer = api.post(
            "/v1/memberships/tenant",
            token=admin,
            json={"user_id": str(user.id), "role": "member"},
        )

        assert answer.status_code == 201
        assert seats(limited) == 4


class TestList:
    def test_filters_by_state_and_address(self, api, admin, invite, expire):
        invite("old@example.com")
        expire()
        gone = invite("gone@example.com").get_json()["data"]
        api.delete(f"{PATH}/{gone['id']}", token=admin)
        invite("new@example.com")

        def emails(query=""):
            listed = api.get(f"{PATH}?{query}", token=admin).get_json()["data"]
            return [(one["email"], one["state"]) for one in listed]

        old, gone, new = ("old@example.com", "expired"), (gone["email"], "revoked"), None
        new = ("new@example.com", "pending")
        assert emails() == [old, gone, new]
        assert emails("state=pending") == [new]
        assert emails("state=expired") == [old]
        assert emails("state=accepted") == []
        assert emails("email=NEW@example.com") == [new]
        assert api.get(f"{PATH}?state=lost", token=admin).status_code == 422

    def test_shows_no_token(self, api, admin, invite):
        created = invite().get_json()["data"]

        one = api.get(f"{PATH}/{created['id']}", token=admin).get_json()["data"]

        assert one == {name: created[name] for name in created if name not in ("token", "url")}
        assert created["token"] not in api.get(PATH, token=admin).text


class TestResend:
    def test_makes_a_new_token_and_a_new_end(self, api, admin, invite, expire):
        created = invite().get_json()["data"]
        expire()

        answer = api.post(f"{PATH}/{created['id']}/resend", token=admin)

        data = answer.get_json()["data"]
        assert answer.status_code == 200
        assert data["state"] == "pending"
        assert data["token"] != created["token"]
        assert database.row(Invitation).digest == digest_of(data["token"])

    def test_of_an_expired_one_needs_a_seat_and_a_free_address(
        self, api, admin, tenant, invite, expire
    ):
        create_limits("free", limit_flag("seats", 2))
        created = invite().get_json()["data"]
        expire()
        again = invite().get_json()["data"]

        def resend():
            return api.post(f"{PATH}/{created['id']}/resend", token=admin)

        assert code_of(resend()) == (409, "invitation_exists")
        api.delete(f"{PATH}/{again['id']}", token=admin)
        invite("other@example.com")
        assert code_of(resend()) == (409, "seat_limit")
        assert api.post(f"{PATH}/{again['id']}/resend", token=admin).status_code == 410

    def test_of_a_role_above_ones_own_is_refused(self, api, admin, owner, invite):
        created = invite(role="owner", token=owner).get_json()["data"]

        answer = api.post(f"{PATH}/{created['id']}/resend", token=admin)

        assert code_of(answer) == (403, "role_above_own")


class TestRevoke:
    def test_is_recorded_once(self, api, admin, invite):
        created = invite().get_json()["data"]

        for _ in range(2):
            assert api.delete(f"{PATH}/{created['id']}", token=admin).status_code == 204

        assert len(database.rows(AuditEvent, action="invitation.revoked")) == 1
        shown = api.get(f"{PATH}/{created['id']}", token=admin).get_json()["data"]
        assert shown["state"] == "revoked"


class TestRetention:
    def test_deletes_what_ended_long_ago(self, app, tenant):
        ages = {"old": 401, "kept": 399}
        for name, days in ages.items():
            ended = utcnow() - timedelta(days=days)
            create_invitation(tenant.id, email=f"{name}@example.com", expires_at=ended)
        create_invitation(tenant.id, email="pending@example.com")

        with app.app_context():
            jobs.remove_old_invitations()

        left = {row.email for row in database.rows(Invitation)}
        assert left == {"kept@example.com", "pending@example.com"}


class TestEvents:
    def test_have_the_token_while_it_is_valid(self, api, admin, invite):
        created = invite().get_json()["data"]
        api.sequence()

        def tokens():
            api.sequence()
            listed = api.get("/v1/events?types=invitation.*", token=admin).get_json()["data"]
            return [(one["type"], one["data"].get("token")) for one in listed]

        assert tokens() == [("invitation.created", created["token"])]
        resent = api.post(f"{PATH}/{created['id']}/resend", token=admin).get_json()["data"]
        assert tokens() == [("invitation.created", None), ("invitation.resent", resent["token"])]
        api.delete(f"{PATH}/{created['id']}", token=admin)
        assert tokens()[:2] == [("invitation.created", None), ("invitation.resent", None)]
        for table in ("events", "outbox_events", "audit_events", "invitations"):
            exists = database.query(f"SELECT to_regclass('{table}')")[0][0]
            stored = database.query(f"SELECT * FROM {table}") if exists else []
            assert created["token"] not in str(stored)
            assert resent["token"] not in str(stored)

    def test_leave_the_token_out_without_its_key(self, environment, admin, invite, api):
        from cryptography.fernet import Fernet

        created = invite().get_json()["data"]
        api.sequence()
        old, new = environment["SECRETS_KEY"], Fernet.generate_key().decode()
        headers = {"Authorization": f"Bearer {admin}"}
        found = []
        for keys in (f"{new},{old}", new):
            rotated = create_app({**environment, "SECRETS_KEY": keys})
            client = rotated.test_client()
            (event,) = client.get("/v1/events?types=invitation.*", headers=headers).get_json()[
                "data"
            ]
            found.append(event["data"]["token"])

        assert found == [created["token"], None]

    def test_are_delivered_with_the_token(self, app, api, invite, tenant):
        with receiver() as hook:
            create_endpoint(api, url=hook.url, types=["invitation.*"], tenant_id=str(tenant.id))
            created = invite().get_json()["data"]
            api.sequence()
            with sender(app):
                hook.wait_for(1)

        (delivered,) = hook.received
        data = json.loads(delivered.body)["data"]
        assert (data["token"], data["state"]) == (created["token"], "pending")

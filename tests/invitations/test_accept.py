"""Accept invitations: replay, forwarding, races, what the answers tell."""

from datetime import timedelta

import jwt
import pytest

from app.audit.models import AuditEvent
from app.cli.tokens import issue_token
from app.invitations.models import Invitation
from app.memberships.models import Membership
from app.users.models import User
from tests import database
from tests.concurrency import at_once
from tests.factories import (
    create_api_key,
    create_limits,
    create_member,
    create_membership,
    create_tenant,
    create_user,
    limit_flag,
    person_token,
    platform_token,
    user_token,
)

PATH = "/v1/invitations"
EMAIL = "ada@example.com"


@pytest.fixture
def invite(api, tenant):
    """Invite Ada; the invitation with its token."""

    def send(email=EMAIL, role="member", **more):
        sent = {"email": email, "role": role, "tenant_id": str(tenant.id), **more}
        answer = api.post(PATH, token=more.pop("token", None) or platform_token(), json=sent)
        assert answer.status_code == 201, answer.text
        return answer.get_json()["data"]

    return send


@pytest.fixture
def accept(api):
    """Accept with a token, as a person; the answer."""

    def send(invitation, subject="user_ada", email=EMAIL):
        token = invitation if isinstance(invitation, str) else invitation["token"]
        person = person_token(subject, email)
        return api.post(f"{PATH}/accept", token=person, json={"token": token})

    return send


def code_of(answer):
    return answer.status_code, answer.get_json()["code"]


def seats(tenant):
    return database.query("SELECT count_seats(CAST(:id AS uuid))", id=str(tenant.id))[0][0]


class TestAccept:
    def test_makes_a_user_and_a_membership(self, api, tenant, invite, accept):
        invitation = invite(role="billing", meta_data={"team": "red"})

        answer = accept(invitation, email="ADA@Example.com")

        membership, user = database.row(Membership), database.row(User)
        assert answer.status_code == 200
        assert answer.get_json()["data"]["id"] == str(membership.id)
        assert (membership.role, membership.is_active) == ("billing", True)
        assert (user.idp_user_id, user.email) == ("user_ada", EMAIL)
        assert user.meta_data == {"team": "red"}
        assert membership.created_by_user_id == f"invitation:{invitation['id']}"
        shown = api.get(f"{PATH}/{invitation['id']}", token=platform_token()).get_json()["data"]
        assert (shown["state"], shown["user_id"]) == ("accepted", str(user.id))
        assert api.get("/v1/users", token=user_token(user)).status_code == 200
        actions = {row.action for row in database.rows(AuditEvent, tenant_id=tenant.id)}
        assert actions >= {"user.created", "membership.created", "invitation.accepted"}

    def test_takes_no_second_seat(self, tenant, invite, accept):
        create_limits("free", limit_flag("seats", 1))
        invitation = invite()

        assert seats(tenant) == 1
        assert accept(invitation).status_code == 200
        assert seats(tenant) == 1

    def test_does_not_bring_back_who_was_deactivated(self, api, owner, invite, accept):
        invitation = invite()
        membership = accept(invitation).get_json()["data"]
        path = f"/v1/memberships/tenant/{membership['id']}/active?is_active=false"
        assert api.patch(path, token=owner).status_code == 200

        again = accept(invitation)

        assert again.get_json()["data"]["is_active"] is False
        assert not database.row(Membership, id=membership["id"]).is_active

    def test_uses_the_person_who_is_there(self, tenant, invite, accept):
        user = create_user(tenant, idp_user_id="user_ada", email="former@example.com")

        assert accept(invite()).status_code == 200
        assert database.row(Membership).user_id == user.id
        assert database.row(User).email == "former@example.com"

    def test_activates_who_has_left(self, tenant, invite, accept):
        user = create_user(tenant, idp_user_id="user_ada", email=EMAIL, is_active=False)
        create_membership(tenant, user, "viewer", is_active=False)

        assert accept(invite(role="admin")).status_code == 200
        membership = database.row(Membership)
        assert (membership.role, membership.is_active) == ("admin", True)
        assert database.row(User).is_active

    def test_an_owner_who_has_left_can_come_back_with_another_role(self, tenant, invite, accept):
        user = create_user(tenant, idp_user_id="user_ada", email=EMAIL)
        create_membership(tenant, user, "owner", is_active=False)

        answer = accept(invite(role="viewer"))

        data = answer.get_json()["data"]
        assert (data["role"], data["is_active"]) == ("viewer", True)

    def test_leaves_an_active_membership_as_it_is(self, tenant, invite, accept):
        user = create_user(tenant, idp_user_id="user_ada", email="former@example.com")
        create_membership(tenant, user, "viewer")

        answer = accept(invite(role="admin"))

        assert answer.get_json()["data"]["role"] == "viewer"
        assert database.row(Invitation).accepted_at is not None

    def test_an_admin_brings_back_no_owner(self, api, tenant, admin, accept):
        user = create_user(tenant, idp_user_id="user_ada", email=EMAIL)
        create_membership(tenant, user, "owner", is_active=False)
        sent = {"email": EMAIL, "role": "member"}
        invitation = api.post(PATH, token=admin, json=sent).get_json()["data"]

        assert code_of(accept(invitation)) == (403, "owner_only")
        assert not database.row(Membership, user_id=user.id).is_active

    def test_in_the_console_uses_the_address_of_the_sign_in(self, app, invite):
        from app.auth import sessions
        from app.core.db.transactions import transaction

        with app.app_context(), transaction():
            secret = sessions.start("user_ada", None, EMAIL)
        with app.app_context(), transaction():
            claims = sessions.find(secret)
        token = invite()["token"]

        environ = {"controlplane.claims": claims}
        answer = app.test_client().post(
            f"{PATH}/accept", json={"token": token}, environ_overrides=environ
        )

        assert answer.status_code == 200


class TestCredential:
    def test_is_a_user_token(self, api, tenant, invite):
        body = {"token": invite()["token"]}

        none = api.post(f"{PATH}/accept", json=body)
        keys = [create_api_key(owner, ["memberships:write"]) for owner in (tenant, None)]

        assert none.status_code == 401
        assert none.headers["WWW-Authenticate"] == "Bearer"
        for key in keys:
            assert code_of(api.post(f"{PATH}/accept", token=key, json=body)) == (
                403,
                "permission_denied",
            )

    @pytest.mark.parametrize(
        "claims",
        [
            {},
            {"email_verified": False},
            {"email_verified": "false"},
            {"email_verified": 1},
            {"email_verified": None},
            {"email": ["ada@example.com"], "email_verified": True},
            {"email": {"value": EMAIL}, "email_verified": True},
            {"email": "", "email_verified": True},
        ],
    )
    def test_has_a_verified_address(self, app, api, invite, claims):
        config = app.extensions["config"]
        payload = jwt.decode(
            issue_token(config, subject="user_ada"), options={"verify_signature": False}
        )
        key = config.jwt_signing_key
        token = jwt.encode({**payload, "email": EMAIL, **claims}, key, algorithm="EdDSA")
        sent = {"token": invite()["token"]}

        assert code_of(api.post(f"{PATH}/accept", token=token, json=sent)) == (403, "other_address")

    @pytest.mark.parametrize("setting", ["email_verified", "-"])
    def test_address_may_be_verified_by_the_provider_always(self, app, environment, setting):
        from app.auth.tokens import Claims
        from app.config import load_config

        config = load_config({**environment, "JWT_EMAIL_VERIFIED_CLAIM": setting})
        payload = {"sub": "user_ada", "exp": 1, "email": EMAIL}

        assert Claims.checked(payload, config).email == (EMAIL if setting == "-" else None)


class TestRefusals:
    def test_a_forwarded_token_tells_nothing(self, api, invite, accept, tenant):
        invitation = invite()
        refused = accept(invitation, "user_eve", "eve@example.com")
        api.delete(f"{PATH}/{invitation['id']}", token=platform_token())

        revoked = accept(invitation, "user_eve", "eve@example.com")

        assert code_of(refused) == (403, "other_address")
        assert refused.get_json() == revoked.get_json()
        assert EMAIL not in refused.text
        assert tenant.name not in refused.text
        assert database.rows(Membership) == []

    @pytest.mark.parametrize("lookalike", ["ſam@example.com", "\u212aay@example.com"])
    def test_a_lookalike_is_another_address(self, invite, accept, lookalike):
        written = "sam@example.com" if lookalike.startswith("ſ") else "kay@example.com"

        assert code_of(accept(invite(written), "user_eve", lookalike)) == (403, "other_address")

    @pytest.mark.parametrize("written", ["ada@bücher.example", "ada@xn--bcher-kva.example"])
    def test_an_international_domain_in_any_form_is_the_same(self, invite, accept, written):
        invitation = invite("ada@xn--bcher-kva.example")

        assert accept(invitation, email=written).status_code == 200

    @pytest.mark.parametrize("ends", ["revoked", "expired", "accepted"])
    def test_after_its_end_says_the_last_state(self, api, invite, accept, ends):
        invitation = invite()
        if ends == "revoked":
            api.delete(f"{PATH}/{invitation['id']}", token=platform_token())
        elif ends == "expired":
            database.execute("UPDATE invitations SET expires_at = now()")
        else:
            accept(invitation)

        answer = accept(invitation, "user_other")

        assert code_of(answer) == (410, "invitation_ended")
        assert ends in answer.get_json()["detail"]

    def test_in_a_suspended_tenant(self, tenant, invite, accept):
        invitation = invite()
        database.execute("UPDATE tenants SET is_active = false")

        assert code_of(accept(invitation)) == (403, "tenant_suspended")
        database.execute("UPDATE tenants SET is_active = true")
        assert accept(invitation).status_code == 200
        database.execute("UPDATE tenants SET is_active = false")
        assert code_of(accept(invitation)) == (403, "tenant_suspended")

    def test_of_an_old_token(self, api, invite, accept):
        invitation = invite()
        api.post(f"{PATH}/{invitation['id']}/resend", token=platform_token())

        assert code_of(accept(invitation)) == (404, "invitation_not_found")

    @pytest.mark.parametrize(
        "token", ["x", "inv_", "inv_" + "A" * 43, "sk_x", "ſ" * 200, "inv_\u0000"]
    )
    def test_of_an_unknown_token(self, accept, token):
        assert accept(token).status_code in (404, 422)

    def test_of_a_token_of_a_megabyte(self, api):
        answer = api.post(
            f"{PATH}/accept", token=person_token("user_ada", EMAIL), json={"token": "x" * 1_000_000}
        )

        assert answer.status_code in (413, 422)
        assert len(answer.data) < 2_000

    def test_for_an_address_of_another_user(self, tenant, invite, accept):
        create_user(tenant, email=EMAIL)

        assert code_of(accept(invite())) == (409, "email_taken")
        assert database.row(Invitation).accepted_at is None

    def test_of_a_providers_invitation(self, api, app, tenant):
        from app.core.clock import utcnow
        from app.invitations.service import apply_from_provider
        from tests.database import platform_transaction

        values = {"email": EMAIL, "role": "member", "expires_at": utcnow() + timedelta(days=365)}
        with platform_transaction():
            found = apply_from_provider(tenant.id, "workos", "inv_1", values)
            again = apply_from_provider(tenant.id, "workos", "inv_1", values)
        assert (again.id, again.version, again.digest) == (found.id, 1, None)
        path = f"{PATH}/{found.id}"
        for method, part in (("DELETE", ""), ("POST", "/resend")):
            answer = api.request(method, path + part, token=platform_token())
            assert code_of(answer) == (409, "managed_by_provider")
        assert seats(tenant) == 1
        with platform_transaction():
            revoked = {**values, "revoked_at": utcnow()}
            apply_from_provider(tenant.id, "workos", "inv_1", revoked)
        assert api.get(path, token=platform_token()).get_json()["data"]["state"] == "revoked"
        assert seats(tenant) == 0


class TestTries:
    def test_after_twenty_wrong_tokens_answers_429(self, with_limits, invite):
        limited = with_limits()
        headers = {"Authorization": f"Bearer {person_token('user_ada', EMAIL)}"}
        token = invite()["token"]

        def send(value, address="192.0.2.1"):
            environ = {"REMOTE_ADDR": address}
            return limited.test_client().post(
                f"{PATH}/accept", json={"token": value}, headers=headers, environ_base=environ
            )

        answers = [send(f"inv_{number}").status_code for number in range(22)]

        assert answers == [404] * 20 + [429] * 2
        beyond = send(token)
        assert beyond.status_code == 429
        assert int(beyond.headers["Retry-After"]) <= 3600
        assert send(token, "192.0.2.2").status_code == 200


class TestRaces:
    def test_fifty_at_once_make_one_membership(self, tenant, invite, accept):
        token = invite()["token"]

        answers = at_once([lambda: accept(token)] * 50)

        assert {one.status_code for one in answers} == {200}
        assert len({one.get_json()["data"]["id"] for one in answers}) == 1
        assert len(database.rows(Membership)) == len(database.rows(User)) == 1

    def test_of_two_people_with_one_address_one_wins(self, invite, accept):
        token = invite()["token"]

        answers = at_once([lambda n=n: accept(token, f"user_{n}") for n in range(8)])

        assert sorted(one.status_code for one in answers) == [200] + [410] * 7
        assert len(database.rows(Membership)) == 1

    @pytest.mark.parametrize("ends", ["revoke", "resend", "suspend", "expire"])
    def test_at_its_end_it_counts_or_it_does_not(self, api, tenant, invite, accept, ends):
        token = platform_token()
        for number in range(6):
            invitation = invite(f"{number}@example.com")
            path = f"{PATH}/{invitation['id']}"

            def end(path=path):
                if ends == "revoke":
                    return api.delete(path, token=token)
                if ends == "resend":
                    return api.post(f"{path}/resend", token=token)
                if ends == "suspend":
                    suspended = f"/v1/tenants/{tenant.id}/active?is_active=false"
                    return api.patch(suspended, token=token)
                sql = "UPDATE invitations SET expires_at = now()"
                return database.execute(sql)

            def join(invitation=invitation, number=number):
                return accept(invitation, f"user_{number}", f"{number}@example.com")

            _, answer = at_once([end, join])

            is_member = bool(database.rows(User, idp_user_id=f"user_{number}"))
            stored = database.row(Invitation, id=invitation["id"])
            assert is_member == (answer.status_code == 200) == (stored.accepted_at is not None)
            assert answer.status_code in (200, 403, 404, 410)
            assert not (stored.accepted_at and stored.revoked_at)
            database.execute("UPDATE tenants SET is_active = true")

    def test_beside_a_member_who_is_added(self, api, tenant, invite, accept):
        """One person by two ways at once is one user with one membership."""
        for number in range(5):
            email, subject = f"{number}@example.com", f"user_{number}"
            invitation = invite(email)

            def create(email=email, subject=subject):
                return api.post(
                    "/v1/users",
                    token=platform_token(tenant=tenant),
                    json={"idp_user_id": subject, "email": email},
                )

            def join(invitation=invitation, subject=subject, email=email):
                return accept(invitation, subject, email)

            created, joined = at_once([create, join])

            assert created.status_code in (201, 409)
            assert joined.status_code == 200
            assert len(database.rows(User, idp_user_id=subject)) == 1


class TestTenants:
    def test_another_tenant_is_not_touched(self, tenant, invite, accept):
        other = create_tenant()
        create_member(other, idp_user_id="user_ada", email=EMAIL)

        assert accept(invite()).status_code == 200
        assert len(database.rows(Membership, tenant_id=other.id)) == 1
        assert len(database.rows(Membership, tenant_id=tenant.id)) == 1

"""GET /v1/access/explain."""

from datetime import timedelta
from itertools import product

import pytest

from app.auth.models import ApiKey
from app.auth.permissions import PLATFORM_ONLY, Permission, Role
from app.core.clock import utcnow
from tests.database import row
from tests.factories import (
    PLATFORM_SUBJECT,
    create_api_key,
    create_domain,
    create_invitation,
    create_join_request,
    create_member,
    create_membership,
    create_tenant,
    create_user,
    platform_token,
    user_token,
)

PATH = "/v1/access/explain"
ENDPOINTS = {
    Permission.USERS_READ: "/v1/users",
    Permission.BILLING_READ: "/v1/billing/subscriptions",
    Permission.AUDIT_READ: "/v1/audit-events",
    Permission.WEBHOOKS_READ: "/v1/webhooks/events",
    Permission.SUPERADMIN: "/v1/tenants",
}
"""An endpoint for each of some permissions: of all roles, of few, of admins, of the platform."""


@pytest.fixture
def explain(api):
    """Ask as the platform, or with another token; the answer's data."""

    def ask(permission=Permission.USERS_READ, *, token=None, **query):
        query = {"permission": permission, **query}
        answer = api.get(PATH, token=token or platform_token(), query_string=query)
        assert answer.status_code == 200, answer.text
        return answer.get_json()["data"]

    return ask


def verdict(told) -> tuple[int, str]:
    return told["status"], told["reason"]


def real_verdict(api, permission, token) -> tuple[int, str]:
    """What an endpoint of the permission answers; a 401 has no code."""
    answer = api.get(ENDPOINTS[permission], token=token)
    reason = "key_invalid" if answer.status_code == 401 else answer.get_json().get("code", "")
    return answer.status_code, reason


def key_of(secret):
    return row(ApiKey, prefix=secret[:8])


def step(told, name):
    (found,) = [one for one in told["steps"] if one["step"] == name]
    return found


class TestVerdict:
    """The verdict is what the endpoints answer."""

    @pytest.mark.parametrize("permission", ENDPOINTS)
    @pytest.mark.parametrize("role", [*Role, None])
    def test_of_a_user_token_is_the_real_one(self, api, explain, permission, role):
        wrong = []
        for tenant_state, user_state, membership_state in product([True, False], repeat=3):
            tenant = create_tenant(is_active=tenant_state)
            user = create_user(tenant, is_active=user_state)
            if role:
                create_membership(tenant, user, role, is_active=membership_state)

            told = explain(permission, user_id=user.id)

            if verdict(told) != real_verdict(api, permission, user_token(user)):
                wrong.append((tenant_state, user_state, membership_state, told))

        assert wrong == []

    @pytest.mark.parametrize("permission", ENDPOINTS)
    @pytest.mark.parametrize("is_active", [True, False])
    def test_of_a_superadmin_is_the_real_one(self, api, explain, permission, is_active):
        tenant = create_tenant(is_active=is_active)

        for home in (None, tenant):
            place = {} if home is None else {"org_id": home.idp_org_id}
            told = explain(permission, subject=PLATFORM_SUBJECT, **place)
            real = real_verdict(api, permission, platform_token(tenant=home))
            assert verdict(told) == real == (200, "")
            assert told["decided_by"] == "platform"

    @pytest.mark.parametrize("permission", ENDPOINTS)
    @pytest.mark.parametrize("of_tenant", [True, False, None], ids=["active", "suspended", "none"])
    @pytest.mark.parametrize(
        "granted", [[], [Permission.USERS_READ], [Permission.WEBHOOKS_READ], list(Permission)]
    )
    def test_of_a_key_is_the_real_one(self, api, explain, permission, of_tenant, granted):
        past, future = utcnow() - timedelta(days=1), utcnow() + timedelta(days=1)
        wrong = []
        for revoked_at, expires_at in product([None, past], [None, past, future]):
            tenant = None if of_tenant is None else create_tenant(is_active=of_tenant)
            secret = create_api_key(tenant, granted, revoked_at=revoked_at, expires_at=expires_at)

            told = explain(permission, key_id=key_of(secret).id)

            if verdict(told) != real_verdict(api, permission, secret):
                wrong.append((revoked_at, expires_at, told))

        assert wrong == []

    def test_of_another_organization_is_the_real_one(self, api, app, explain):
        user, _, _ = create_member(create_tenant(), role="owner")
        other = create_tenant()
        create_membership(other, create_user(other, idp_user_id=user.idp_user_id), "viewer")

        in_other = explain(Permission.BILLING_READ, user_id=user.id, tenant_id=other.id)
        by_subject = explain(subject=user.idp_user_id, org_id=other.idp_org_id)
        nowhere = explain(subject=user.idp_user_id, org_id="unknown")
        without = explain(subject=user.idp_user_id)

        assert verdict(in_other) == (403, "permission_denied")
        assert verdict(by_subject) == (200, "")
        assert verdict(nowhere) == verdict(without) == (403, "no_membership")
        assert nowhere["decided_by"] == without["decided_by"] == "tenant"


class TestSteps:
    def test_stand_in_their_order_with_what_was_found(self, explain, tenant):
        user, membership, _ = create_member(tenant, role="viewer")

        told = explain(Permission.BILLING_READ, user_id=user.id)

        assert [(one["step"], one["outcome"]) for one in told["steps"]] == [
            ("credential", "passed"),
            ("tenant", "passed"),
            ("user", "passed"),
            ("membership", "passed"),
            ("role", "passed"),
            ("permission", "failed"),
            ("platform", "skipped"),
        ]
        rows = [step(told, name)["row_id"] for name in ("tenant", "user", "membership")]
        assert rows == [str(row.id) for row in (tenant, user, membership)]
        assert told["decided_by"] == "permission"
        assert step(told, "permission")["change"].endswith("owner, admin, billing.")
        assert {**told, "steps": []} == {
            "permission": "billing:read",
            "allowed": False,
            "status": 403,
            "reason": "permission_denied",
            "decided_by": "permission",
            "tenant_id": str(tenant.id),
            "steps": [],
        }

    def test_show_all_that_would_have_to_change(self, explain):
        tenant = create_tenant(is_active=False)
        user = create_user(tenant, is_active=False)
        create_membership(tenant, user, "member", is_active=False)

        told = explain(Permission.AUDIT_READ, user_id=user.id)

        failed = [one["step"] for one in told["steps"] if one["outcome"] == "failed"]
        assert failed == ["tenant", "user", "membership", "permission"]
        assert (told["reason"], told["decided_by"]) == ("no_membership", "user")
        assert all(one["change"] for one in told["steps"] if one["outcome"] == "failed")

    @pytest.mark.parametrize(("source", "sender"), [("api", "platform:ops"), ("workos", "workos")])
    def test_tell_by_which_invitation_the_person_came(self, explain, tenant, source, sender):
        user, _, token = create_member(tenant, role="admin")
        people = {"user_id": user.id, "created_by_user_id": "platform:ops"}
        now = utcnow()
        create_invitation(tenant.id, **people, accepted_at=now - timedelta(days=9))
        create_invitation(tenant.id, **people, revoked_at=now)
        last = create_invitation(tenant.id, **people, accepted_at=now, source=source)

        for asking in (token, platform_token()):
            told = explain(Permission.BILLING_READ, user_id=user.id, token=asking)

            assert step(told, "membership")["found"] == (
                f"The membership is active. The user was let in by the invitation {last.id}"
                f" of {sender}."
            )

    def test_tell_by_which_domain_the_person_came(self, explain, tenant):
        user, _, token = create_member(tenant, role="admin")
        other, _, _ = create_member(tenant)
        create_join_request(tenant, domain="example.com", state="accepted", user_id=user.id)
        create_join_request(tenant, domain="example.com", user_id=other.id)

        told = explain(user_id=user.id, token=token)

        assert step(told, "membership")["found"] == (
            "The membership is active. The user was let in by the domain example.com."
        )
        assert "let in" not in str(explain(user_id=other.id))

    @pytest.mark.parametrize(
        ("values", "is_told"),
        [
            ({"enforce_sso": True}, True),
            ({"enforce_sso": False}, False),
            ({"enforce_sso": True, "state": "lapsed"}, False),
        ],
    )
    def test_tell_that_a_domain_enforces_single_sign_on(self, explain, tenant, values, is_told):
        user, _, token = create_member(tenant, role="admin", email="ada@acme.example")
        create_domain(tenant, **{"name": "acme.example", "state": "verified", **values})

        for asking in (token, platform_token()):
            told = step(explain(user_id=user.id, token=asking), "user")

            assert (told["outcome"], told["row_id"]) == ("passed", str(user.id))
            assert ("People of acme.example must use" in told["found"]) is is_told

    def test_tell_nothing_of_another_tenants_domain(self, explain, tenant):
        user, _, token = create_member(tenant, role="admin", email="ada@acme.example")
        domain = {"name": "acme.example", "state": "verified", "enforce_sso": True}
        create_domain(create_tenant(), **domain)

        for asking in (token, platform_token()):
            assert "acme.example must" not in str(explain(user_id=user.id, token=asking))

    @pytest.mark.parametrize(
        ("values", "membership", "decided_by"),
        [
            ({}, {"is_active": False}, "membership"),
            ({}, None, "membership"),
            ({"is_active": False}, {}, "user"),
        ],
    )
    def test_name_the_row_that_is_missing(self, explain, values, membership, decided_by, tenant):
        user = create_user(tenant, **values)
        if membership is not None:
            create_membership(tenant, user, "owner", **membership)

        told = explain(user_id=user.id)

        assert (told["reason"], told["decided_by"]) == ("no_membership", decided_by)

    def test_of_a_key_name_the_key_without_its_secret(self, explain):
        secret = create_api_key(create_tenant(), [Permission.USERS_READ], name="deploy")

        told = explain(Permission.USERS_WRITE, key_id=key_of(secret).id)

        assert "deploy" in step(told, "credential")["found"]
        assert not any(text in str(told) for text in (secret, key_of(secret).digest))
        assert told["decided_by"] == "permission"

    @pytest.mark.parametrize("permission", sorted(PLATFORM_ONLY))
    def test_name_the_platform_for_what_only_it_can_do(self, explain, permission):
        user, _, _ = create_member(create_tenant(), role="owner")
        secret = create_api_key(create_tenant(), [permission])

        assert explain(permission, user_id=user.id)["decided_by"] == "platform"
        assert explain(permission, key_id=key_of(secret).id)["decided_by"] == "platform"

    def test_do_not_record_the_use_of_the_key(self, explain):
        secret = create_api_key(create_tenant(), [Permission.USERS_READ])

        explain(key_id=key_of(secret).id)

        assert key_of(secret).last_used_at is None


class TestATenantsCredential:
    """It is told about its own people, and nothing about others."""

    @pytest.fixture
    def token(self, app):
        self.tenant = create_tenant()
        return create_member(self.tenant, role="admin")[2]

    def test_asks_about_its_own_people(self, explain, token):
        user, _, _ = create_member(self.tenant, role="viewer")
        secret = create_api_key(self.tenant, [Permission.USERS_READ])

        assert explain(token=token, user_id=user.id)["allowed"] is True
        assert explain(token=token, subject=user.idp_user_id)["allowed"] is True
        assert explain(token=token, key_id=key_of(secret).id)["allowed"] is True

    def test_cannot_tell_another_tenants_from_unknown(self, api, token):
        other = create_tenant()
        user, _, _ = create_member(other, role="viewer")
        keys = [create_api_key(of, list(Permission)) for of in (other, None)]
        unknown = "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f"
        of_kinds = [
            [{"user_id": user.id}, {"user_id": unknown}],
            [{"key_id": each} for each in (*(key_of(secret).id for secret in keys), unknown)],
            [{"subject": user.idp_user_id, "tenant_id": each} for each in (other.id, unknown)],
            [{"subject": user.idp_user_id, "org_id": each} for each in (other.idp_org_id, "none")],
        ]

        for questions in of_kinds:
            answers = [
                api.get(PATH, token=token, query_string={"permission": "users:read", **question})
                for question in questions
            ]

            assert {answer.status_code for answer in answers} == {404}
            assert len({answer.text for answer in answers}) == 1

    def test_learns_no_more_of_another_tenants_person_than_of_nobody(self, explain, token):
        user, _, _ = create_member(create_tenant(), role="viewer")

        told = explain(token=token, subject=user.idp_user_id)
        nobody = explain(token=token, subject="nobody")

        assert str(told).replace(user.idp_user_id, "nobody") == str(nobody)

    def test_does_not_learn_who_is_a_superadmin(self, explain, token):
        platform_token()
        user, _, _ = create_member(self.tenant, role="viewer", idp_user_id=PLATFORM_SUBJECT)

        told = explain(Permission.BILLING_READ, token=token, user_id=user.id)

        assert told["reason"] == "permission_denied"
        assert "cannot see" in step(told, "platform")["found"]


class TestQuestions:
    @pytest.mark.parametrize(
        ("query", "loc"),
        [
            ({}, "permission"),
            ({"permission": "users:read", "subject": "s", "resource_type": "x"}, "resource_id"),
            ({"permission": "users:read"}, "subject"),
            ({"permission": "users:read", "subject": "s", "key_id": "01936f2e" * 4}, "key_id"),
            ({"permission": "users:read", "subject": ""}, "subject"),
            ({"permission": "users:read", "user_id": "x"}, "user_id"),
            (
                {
                    "permission": "users:read",
                    "subject": "s",
                    "org_id": "o",
                    "tenant_id": "01936f2e" * 4,
                },
                "tenant_id",
            ),
        ],
    )
    def test_that_are_not_clear_are_refused(self, api, query, loc):
        answer = api.get(PATH, token=platform_token(), query_string=query)

        assert answer.status_code == 422
        assert answer.get_json()["detail"][0]["loc"] == ["query", loc]

    @pytest.mark.parametrize("name", ["user_id", "key_id"])
    def test_about_what_does_not_exist_are_404(self, api, name):
        query = {"permission": "users:read", name: "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f"}

        assert api.get(PATH, token=platform_token(), query_string=query).status_code == 404

    def test_about_a_key_of_another_tenant_than_the_named_one_are_404(self, api, explain):
        tenant, other = create_tenant(), create_tenant()
        key = key_of(create_api_key(tenant, ["users:read"]))
        query = {"permission": "users:read", "key_id": key.id}

        told = explain(key_id=key.id, tenant_id=tenant.id)
        answer = api.get(
            PATH, token=platform_token(), query_string={**query, "tenant_id": other.id}
        )

        assert told["allowed"] is True
        assert answer.status_code == 404

    def test_about_a_platform_key_name_a_tenant_that_exists(self, api, explain, tenant):
        key = key_of(create_api_key(None, ["users:read"]))
        unknown = {"tenant_id": "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f"}, {"org_id": "unknown"}

        for place in ({}, {"tenant_id": tenant.id}, {"org_id": tenant.idp_org_id}):
            assert explain(key_id=key.id, **place)["allowed"] is True
        for place in unknown:
            query = {"permission": "users:read", "key_id": key.id, **place}
            assert api.get(PATH, token=platform_token(), query_string=query).status_code == 404

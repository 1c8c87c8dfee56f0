"""/v1/memberships/tenant."""

from uuid import uuid4

import pytest

from app.auth.permissions import Role
from tests.factories import (
    create_api_key,
    create_member,
    create_membership,
    create_tenant,
    create_user,
    platform_token,
)

PATH = "/v1/memberships/tenant"


def refusal(answer):
    return answer.status_code, answer.get_json().get("code")


class TestCreateMembership:
    def test_knows_only_the_tenants_own_users(self, api, tenant, owner):
        elsewhere = create_user(create_tenant())

        for user_id, token, path in (
            (elsewhere.id, owner, PATH),
            (uuid4(), owner, PATH),
            (elsewhere.id, platform_token(), f"{PATH}?tenant_id={tenant.id}"),
        ):
            body = {"user_id": str(user_id), "role": "viewer"}
            assert api.post(path, token=token, json=body).status_code == 404

    def test_refuses_a_second_membership_and_a_taken_provider_id(self, api, tenant, owner):
        member, _, _ = create_member(tenant, role="viewer")
        create_membership(tenant, create_user(tenant), "viewer", idp_membership_id="mem_1")
        other = create_user(tenant)

        again = {"user_id": str(member.id), "role": "viewer"}
        taken = {"user_id": str(other.id), "role": "viewer", "idp_membership_id": "mem_1"}

        assert refusal(api.post(PATH, token=owner, json=again)) == (409, "membership_exists")
        assert refusal(api.post(PATH, token=owner, json=taken)) == (409, "idp_membership_id_taken")

    @pytest.mark.parametrize("role", list(Role))
    def test_grants_no_role_above_the_creators_own(self, api, tenant, owner, admin, role):
        tokens = {
            "owner": owner,
            "admin": admin,
            "key": create_api_key(tenant, ["memberships:write"]),
            "platform key": create_api_key(None, ["memberships:write"]),
            "superadmin's key": create_api_key(None, ["platform:superadmin"]),
            "superadmin": platform_token(tenant=tenant),
        }
        path = f"{PATH}?tenant_id={tenant.id}"

        codes = {
            name: api.post(
                path, token=token, json={"user_id": str(create_user(tenant).id), "role": role}
            ).status_code
            for name, token in tokens.items()
        }

        low = 403 if role == "owner" else 201
        below = {"admin": low, "key": low, "platform key": low}
        assert codes == {"owner": 201, **below, "superadmin's key": 201, "superadmin": 201}


class TestListMemberships:
    def test_narrows_by_each_filter(self, api, tenant, owner):
        user = create_user(tenant)
        wanted = create_membership(tenant, user, "billing", is_active=False)
        create_member(create_tenant(), role="billing")

        for query in (f"user_id={user.id}", "role=billing", "is_active=false"):
            listed = api.get(f"{PATH}?{query}", token=owner).get_json()["data"]
            assert [row["id"] for row in listed] == [str(wanted.id)], query


class TestSetRole:
    def test_counts_on_the_members_next_request(self, api, tenant, owner):
        _, membership, token = create_member(tenant, role="viewer")
        body = {"idp_user_id": "u", "email": "a@b.co"}

        before = api.post("/v1/users", token=token, json=body)
        answer = api.patch(f"{PATH}/{membership.id}/role?role=admin", token=owner)
        after = api.post("/v1/users", token=token, json=body)
        api.patch(f"{PATH}/{membership.id}/role?role=member", token=owner)
        again = api.post("/v1/users", token=token, json=body)

        assert answer.get_json()["data"]["role"] == "admin"
        assert [before.status_code, after.status_code, again.status_code] == [403, 201, 403]

    @pytest.mark.parametrize("role", list(Role))
    def test_grants_no_role_above_ones_own(self, api, tenant, owner, admin, role):
        keys = [create_api_key(of, ["memberships:write"]) for of in (tenant, None)]
        codes = []
        for token in (owner, admin, *keys, platform_token()):
            _, membership, _ = create_member(tenant, role="viewer")
            answer = api.patch(f"{PATH}/{membership.id}/role?role={role}", token=token)
            codes.append(refusal(answer))

        low = (403, "role_above_own") if role == "owner" else (200, None)
        assert codes == [(200, None), low, low, low, (200, None)]

    def test_only_an_owner_touches_an_owner(self, api, tenant, owner, admin):
        _, membership, _ = create_member(tenant, role="owner")
        path = f"{PATH}/{membership.id}"

        platform_key = create_api_key(None, ["memberships:write"])
        for change in ("role?role=owner", "role?role=viewer", "active?is_active=false"):
            for token in (admin, platform_key):
                assert refusal(api.patch(f"{path}/{change}", token=token)) == (403, "owner_only")
        assert api.patch(f"{path}/role?role=viewer", token=owner).status_code == 200

    def test_keeps_the_last_active_owner(self, api, tenant):
        _, membership, token = create_member(tenant, role="owner")
        create_membership(tenant, create_user(tenant, is_active=False), "owner")
        _, other, _ = create_member(tenant, role="admin")
        path = f"{PATH}/{membership.id}/role?role=admin"

        alone = api.patch(path, token=token)
        api.patch(f"{PATH}/{other.id}/role?role=owner", token=token)
        with_another = api.patch(path, token=token)

        assert refusal(alone) == (409, "last_owner")
        assert with_another.status_code == 200


class TestSetActive:
    def test_ends_and_brings_back_access(self, api, tenant, owner):
        _, membership, token = create_member(tenant, role="viewer")
        path = f"{PATH}/{membership.id}/active"

        ended = api.patch(f"{path}?is_active=false", token=owner)
        refused = api.get("/v1/users", token=token)
        api.patch(f"{path}?is_active=true", token=owner)
        allowed = api.get("/v1/users", token=token)

        assert ended.get_json()["data"]["is_active"] is False
        assert refusal(refused) == (403, "no_membership")
        assert allowed.status_code == 200

    def test_an_admin_brings_no_owner_back(self, api, tenant, admin):
        membership = create_membership(tenant, create_user(tenant), "owner", is_active=False)

        answer = api.patch(f"{PATH}/{membership.id}/active?is_active=true", token=admin)

        assert refusal(answer) == (403, "owner_only")

"""/v1/users, but for the metadata."""

from uuid import uuid4

import pytest

from app.core.actors import SYSTEM_CLI
from tests.factories import (
    create_api_key,
    create_member,
    create_membership,
    create_tenant,
    create_user,
    platform_token,
)


class TestCreateUser:
    def test_notes_who_created_it_and_fills_in_the_rest(self, api, tenant):
        creator, _, token = create_member(tenant, role="admin")
        body = {"idp_user_id": "u", "email": "Ada@EXAMPLE.com"}

        created = api.post("/v1/users", token=token, json=body).get_json()["data"]

        assert created["tenant_id"] == str(tenant.id)
        assert created["idp_org_id"] == tenant.idp_org_id
        assert created["email"] == "Ada@example.com"
        assert created["created_by_user_id"] == created["updated_by_user_id"] == str(creator.id)
        assert (created["first_name"], created["is_active"]) == ("", True)

    def test_takes_the_tenant_from_the_query_or_the_platform_token(self, api):
        tenant, home = create_tenant(), create_tenant()
        path = f"/v1/users?tenant_id={tenant.id}"

        def created_in(path, token, idp_user_id):
            body = {"idp_user_id": idp_user_id, "email": "a@b.co"}
            return api.post(path, token=token, json=body)

        named = created_in(path, platform_token(tenant=home), "a")
        at_home = created_in("/v1/users", platform_token(tenant=home), "b")
        nowhere = created_in("/v1/users", platform_token(subject="other"), "c")
        unknown = created_in(f"/v1/users?tenant_id={uuid4()}", platform_token(), "d")

        assert named.get_json()["data"]["tenant_id"] == str(tenant.id)
        assert at_home.get_json()["data"]["tenant_id"] == str(home.id)
        assert nowhere.status_code == 422
        assert nowhere.get_json()["detail"] == [
            {
                "type": "missing",
                "loc": ["query", "tenant_id"],
                "msg": "Field required",
                "input": None,
            }
        ]
        assert unknown.status_code == 404

    def test_refuses_an_idp_user_id_that_the_tenant_has(self, api, tenant, admin):
        create_user(tenant, idp_user_id="taken")
        create_user(create_tenant(), idp_user_id="elsewhere")

        clash, fine = (
            api.post("/v1/users", token=admin, json={"idp_user_id": name, "email": "a@b.co"})
            for name in ("taken", "elsewhere")
        )

        assert (clash.status_code, clash.get_json()["code"]) == (409, "idp_user_id_taken")
        assert fine.status_code == 201

    def test_refuses_metadata_beyond_its_limit(self, api, admin):
        body = {"idp_user_id": "u", "email": "a@b.co", "meta_data": {"k": "v" * 32_768}}

        answer = api.post("/v1/users", token=admin, json=body)

        (fault,) = answer.get_json()["detail"]
        assert fault["loc"] == ["body", "meta_data"]
        assert "32768 bytes" in fault["msg"]


class TestListUsers:
    def test_narrows_by_state_address_and_person(self, api, tenant):
        wanted = create_user(tenant, email="a@b.co", idp_user_id="ada", is_active=False)
        _, _, viewer = create_member(tenant, role="viewer")

        for query in (
            "is_active=false",
            "email=a@b.co",
            "email=a@b.co&is_active=0",
            "idp_user_id=ada",
        ):
            listed = api.get(f"/v1/users?{query}", token=viewer).get_json()["data"]
            assert [user["id"] for user in listed] == [str(wanted.id)], query


class TestUpdateUser:
    def test_changes_what_it_is_given_and_says_who_did(self, api, tenant):
        user = create_user(tenant, last_name="Byron")
        admin, _, token = create_member(tenant, role="admin")

        answer = api.patch(f"/v1/users/{user.id}", token=token, json={"first_name": "Ada"})

        changed = answer.get_json()["data"]
        assert (changed["first_name"], changed["last_name"]) == ("Ada", "Byron")
        assert changed["updated_by_user_id"] == str(admin.id)
        assert changed["created_by_user_id"] == SYSTEM_CLI.id
        assert answer.headers["ETag"] == '"2"'

    def test_leaves_idp_user_id_to_the_platform(self, api, tenant):
        user = create_user(tenant)
        create_user(tenant, idp_user_id="taken")
        _, _, owner = create_member(tenant, role="owner")
        path = f"/v1/users/{user.id}"

        refused = api.patch(path, token=owner, json={"idp_user_id": "new"})
        key = create_api_key(None, ["users:write"])
        changed = api.patch(path, token=key, json={"idp_user_id": "new"})
        clash = api.patch(path, token=platform_token(), json={"idp_user_id": "taken"})

        assert (refused.status_code, refused.get_json()["code"]) == (403, "provider_field")
        assert changed.get_json()["data"]["idp_user_id"] == "new"
        assert (clash.status_code, clash.get_json()["code"]) == (409, "idp_user_id_taken")

    @pytest.mark.parametrize("role", ["admin", "key", "platform key"])
    def test_only_an_owner_touches_an_owner(self, api, role, tenant):
        owner, _, owner_token = create_member(tenant, role="owner")
        _, _, admin = create_member(tenant, role="admin")
        of = None if role == "platform key" else tenant
        token = admin if role == "admin" else create_api_key(of, ["users:write"])
        path = f"/v1/users/{owner.id}"

        refused = api.patch(path, token=token, json={"first_name": "X"})
        stale = api.patch(path, token=token, json={"first_name": "X"}, headers={"If-Match": '"7"'})
        metadata = api.patch(f"{path}/meta_data", token=token, json={"patches": {"a": 1}})
        allowed = api.patch(path, token=owner_token, json={"first_name": "X"})

        for answer in (refused, stale):
            assert (answer.status_code, answer.get_json()["code"]) == (403, "owner_only")
        assert metadata.status_code == allowed.status_code == 200

    def test_only_a_superadmin_makes_another_person_the_owner(self, api):
        owner, _, _ = create_member(create_tenant(), role="owner")
        tokens = (create_api_key(None, ["users:write"]), platform_token())

        refused, allowed = (
            api.patch(f"/v1/users/{owner.id}", token=token, json={"idp_user_id": "new"})
            for token in tokens
        )

        assert (refused.status_code, refused.get_json()["code"]) == (403, "owner_only")
        assert allowed.status_code == 200

    def test_an_inactive_owners_membership_is_an_owners_too(self, api, tenant):
        owner = create_user(tenant, is_active=False)
        create_membership(tenant, owner, "owner", is_active=False)
        _, _, admin = create_member(tenant, role="admin")

        answer = api.patch(f"/v1/users/{owner.id}", token=admin, json={"is_active": True})

        assert answer.status_code == 403

    def test_keeps_the_last_active_owner(self, api, tenant):
        owner, _, token = create_member(tenant, role="owner")
        inactive = create_user(tenant, is_active=False)
        create_membership(tenant, inactive, "owner")
        create_membership(tenant, create_user(tenant), "owner", is_active=False)
        path = f"/v1/users/{owner.id}"

        alone = api.patch(path, token=token, json={"is_active": False})
        api.patch(f"/v1/users/{inactive.id}", token=token, json={"is_active": True})
        with_another = api.patch(path, token=token, json={"is_active": False})

        assert (alone.status_code, alone.get_json()["code"]) == (409, "last_owner")
        assert with_another.status_code == 200

"""/v1/roles."""

import pytest

from app.auth.permissions import ROLE_PERMISSIONS
from tests import database
from tests.factories import (
    create_api_key,
    create_assignment,
    create_member,
    create_permission,
    create_role,
    create_tenant,
    platform_token,
)

PATH = "/v1/roles"


def role_id(key):
    """The id of a template."""
    ((found,),) = database.query(
        "SELECT id FROM roles WHERE tenant_id IS NULL AND key = :key", key=key
    )
    return found


class TestCreate:
    def test_makes_a_role_of_the_tenant(self, api, tenant, admin):
        body = {"key": "clerk", "name": "Clerk", "permissions": ["users:read", "users:read"]}

        answer = api.post(PATH, token=admin, json=body)

        assert answer.status_code == 201
        role = answer.get_json()["data"]
        assert api.get(answer.headers["Location"], token=admin).get_json()["data"] == role
        assert role["tenant_id"] == str(tenant.id)
        assert role["permissions"] == ["users:read"]
        assert (role["inherits"], role["assignable_by"], role["is_template"]) == (
            None,
            "admin",
            False,
        )

    def test_the_platform_makes_a_template(self, api, admin):
        body = {"key": "clerk", "name": "Clerk", "permissions": []}

        made = api.post(PATH, token=platform_token(), json=body).get_json()["data"]

        assert (made["tenant_id"], made["is_template"]) == (None, True)
        assert api.get(f"{PATH}/{made['id']}", token=admin).status_code == 200

    def test_the_platform_makes_a_role_of_a_tenant(self, api, tenant):
        body = {"key": "clerk", "name": "Clerk", "permissions": ["billing:write"]}

        answer = api.post(f"{PATH}?tenant_id={tenant.id}", token=platform_token(), json=body)

        assert answer.get_json()["data"]["tenant_id"] == str(tenant.id)

    def test_a_platform_key_that_is_no_superadmin_makes_no_template(self, api):
        key = create_api_key(None, ["roles:write"])

        answer = api.post(
            PATH, token=key, json={"key": "clerk", "name": "Clerk", "permissions": []}
        )

        assert (answer.status_code, answer.get_json()["code"]) == (403, "template_read_only")

    @pytest.mark.parametrize(
        "permission", ["platform:superadmin", "webhooks:read", "usage:write", "no:such"]
    )
    def test_refuses_a_permission_that_no_role_can_have(self, api, tenant, permission):
        body = {"key": "clerk", "name": "Clerk", "permissions": [permission]}

        answer = api.post(f"{PATH}?tenant_id={tenant.id}", token=platform_token(), json=body)

        assert answer.status_code == 422
        assert answer.get_json()["detail"][0]["loc"] == ["body", "permissions"]

    def test_refuses_a_key_that_the_tenant_or_a_template_has(self, api, admin, tenant):
        create_role(tenant, key="clerk")

        for key in ("clerk", "viewer"):
            answer = api.post(PATH, token=admin, json={"key": key, "name": "x", "permissions": []})
            assert (answer.status_code, answer.get_json()["code"]) == (409, "role_exists")

    def test_refuses_a_template_with_the_key_of_a_tenants_role(self, api, tenant):
        create_role(tenant, key="clerk")

        answer = api.post(
            PATH, token=platform_token(), json={"key": "clerk", "name": "x", "permissions": []}
        )

        assert answer.get_json()["code"] == "role_exists"

    def test_a_role_has_at_most_200_permissions(self, api, admin):
        body = {"key": "clerk", "name": "x", "permissions": ["users:read"] * 201}

        assert api.post(PATH, token=admin, json=body).status_code == 422


class TestInheritance:
    def test_refuses_an_unknown_role_and_anothers(self, api, admin):
        create_role(create_tenant(), key="foreign")

        for key in ("nobody", "foreign"):
            body = {"key": "clerk", "name": "x", "permissions": [], "inherits": key}
            answer = api.post(PATH, token=admin, json=body)
            assert answer.get_json()["detail"][0]["loc"] == ["body", "inherits"]

    def test_refuses_a_cycle(self, api, admin, tenant):
        first = create_role(tenant, key="first")
        create_role(tenant, inherits="first", key="second")
        create_role(tenant, inherits="second", key="third")

        for key in ("first", "second", "third"):
            answer = api.patch(f"{PATH}/{first.id}", token=admin, json={"inherits": key})
            assert (answer.status_code, answer.get_json()["code"]) == (409, "role_cycle")

    def test_at_most_5_inherit_one_another(self, api, admin, tenant):
        lowest = create_role(tenant, key="role-1")
        for level in range(2, 6):
            create_role(tenant, inherits=f"role-{level - 1}", key=f"role-{level}")
        create_role(tenant, key="loose")

        body = {"key": "clerk", "name": "x", "permissions": [], "inherits": "role-5"}
        sixth = api.post(PATH, token=admin, json=body)
        first = api.patch(
            f"{PATH}/{lowest.id}",
            token=admin,
            json={"inherits": "loose"},
        )

        assert sixth.get_json()["code"] == first.get_json()["code"] == "role_too_deep"

    def test_a_template_cannot_make_tenants_roles_too_deep(self, api, tenant):
        base, lowest = create_role(None, key="base"), create_role(None, key="lowest")
        create_role(tenant, inherits="base", key="role-2")
        for level in range(3, 6):
            create_role(tenant, inherits=f"role-{level - 1}", key=f"role-{level}")
        create_role(
            create_tenant(), inherits="role-5", key="role-6"
        )  # another tenant's role-5 is none

        answer = api.patch(
            f"{PATH}/{base.id}", token=platform_token(), json={"inherits": lowest.key}
        )

        assert answer.get_json()["code"] == "role_too_deep"


class TestNobodyGains:
    def test_by_a_permission_of_the_service(self, api, tenant):
        role = create_role(tenant, "roles:read", "roles:write", key="editor")
        key_row = create_api_key(tenant, ["roles:write"])
        body = {"key": "clerk", "name": "x", "permissions": ["billing:write"]}

        made = api.post(PATH, token=key_row, json=body)
        changed = api.patch(
            f"{PATH}/{create_role(tenant, 'roles:write', key='own').id}",
            token=key_row,
            json={"permissions": ["roles:write", "billing:write"]},
        )
        unknown = api.patch(f"{PATH}/{role.id}", token=key_row, json={"name": "y"})

        codes = {answer.get_json()["code"] for answer in (made, changed, unknown)}
        assert codes == {"role_above_own"}

    def test_by_a_permission_of_the_product(self, api, tenant, admin, owner):
        create_permission("invoices:approve")
        body = {"key": "clerk", "name": "x", "permissions": ["invoices:approve"]}

        by_admin = api.post(PATH, token=admin, json=body)
        by_owner = api.post(PATH, token=owner, json=body)

        assert by_admin.get_json()["code"] == "role_above_own"
        assert by_admin.get_json()["detail"].endswith("invoices:approve.")
        assert by_owner.status_code == 201

    def test_by_inheritance(self, api, tenant, admin):
        create_permission("invoices:approve")
        create_role(tenant, "invoices:approve", key="accountant")
        body = {"key": "clerk", "name": "x", "permissions": [], "inherits": "accountant"}

        assert api.post(PATH, token=admin, json=body).get_json()["code"] == "role_above_own"

    def test_by_inheritance_of_the_owners_role(self, api, tenant, admin, owner):
        body = {"key": "boss", "name": "x", "permissions": [], "inherits": "owner"}

        by_admin = api.post(PATH, token=admin, json=body)
        by_owner = api.post(PATH, token=owner, json=body)
        _, membership, token = create_member(tenant, role="admin")
        target = {"membership_id": str(membership.id), "role": "boss"}
        assigned = api.post("/v1/role-assignments", token=token, json=target)

        assert by_admin.get_json()["code"] == "role_above_own"
        assert by_owner.status_code == 201
        assert assigned.get_json()["code"] == "role_above_own"

    def test_what_an_assignment_gives_can_be_given(self, api, tenant):
        create_permission("invoices:approve")
        role = create_role(tenant, "invoices:approve", key="accountant")
        _, membership, token = create_member(tenant, role="admin")
        create_assignment(tenant, role, membership_id=membership.id)
        body = {"key": "clerk", "name": "x", "permissions": ["invoices:approve"]}

        assert api.post(PATH, token=token, json=body).status_code == 201

    def test_what_is_held_for_one_resource_or_no_longer_cannot_be_given(self, api, tenant):
        from app.core.clock import utcnow
        from tests.factories import create_resource

        create_permission("invoices:approve")
        role = create_role(tenant, "invoices:approve", key="accountant")
        _, membership, token = create_member(tenant, role="admin")
        create_assignment(
            tenant, role, membership_id=membership.id, resource=create_resource(tenant, "p", "1")
        )
        create_assignment(tenant, role, membership_id=membership.id, expires_at=utcnow())
        body = {"key": "clerk", "name": "x", "permissions": ["invoices:approve"]}

        assert api.post(PATH, token=token, json=body).get_json()["code"] == "role_above_own"

    def test_an_admin_makes_no_role_that_only_an_owner_may_assign(self, api, admin):
        body = {"key": "clerk", "name": "x", "permissions": [], "assignable_by": "owner"}

        assert api.post(PATH, token=admin, json=body).get_json()["code"] == "role_above_own"


class TestTemplates:
    def test_tenants_cannot_edit_them(self, api, owner):
        for method in ("PATCH", "DELETE"):
            answer = api.request(
                method,
                f"{PATH}/{role_id('viewer')}",
                token=owner,
                json={"name": "x"} if method == "PATCH" else None,
            )
            assert (answer.status_code, answer.get_json()["code"]) == (403, "template_read_only")

    def test_the_platform_adds_permissions_of_the_product(self, api):
        create_permission("invoices:read")
        own = sorted(ROLE_PERMISSIONS["admin"])

        answer = api.patch(
            f"{PATH}/{role_id('admin')}",
            token=platform_token(),
            json={"permissions": [*own, "invoices:read"], "name": "Reader"},
        )

        assert answer.get_json()["data"]["permissions"] == sorted([*own, "invoices:read"])

    def test_a_higher_one_has_what_a_lower_one_has_of_the_product(self, api):
        create_permission("invoices:read")

        def give(key, *permissions):
            body = {"permissions": [*sorted(ROLE_PERMISSIONS[key]), *permissions]}
            return api.patch(f"{PATH}/{role_id(key)}", token=platform_token(), json=body)

        early = give("billing", "invoices:read")
        given = [give(key, "invoices:read").status_code for key in ("admin", "billing", "member")]
        taken = give("admin")

        assert given == [200, 200, 200]
        for answer in (early, taken):
            assert (answer.status_code, answer.get_json()["code"]) == (409, "higher_role_lacks")
        detail = "The role admin lacks invoices:read, which billing has."
        assert early.get_json()["detail"] == taken.get_json()["detail"] == detail

    @pytest.mark.parametrize(
        ("key", "change"),
        [
            ("viewer", {"permissions": []}),
            ("viewer", {"permissions": [*sorted(ROLE_PERMISSIONS["viewer"]), "billing:read"]}),
            ("viewer", {"inherits": "admin"}),
            ("viewer", {"assignable_by": "viewer"}),
            ("owner", {"name": "Boss"}),
        ],
    )
    def test_the_five_keep_their_meaning(self, api, key, change):
        answer = api.patch(f"{PATH}/{role_id(key)}", token=platform_token(), json=change)

        assert (answer.status_code, answer.get_json()["code"]) == (409, "role_fixed")

    def test_the_five_cannot_be_deleted(self, api):
        answer = api.delete(f"{PATH}/{role_id('viewer')}", token=platform_token())

        assert answer.get_json()["code"] == "role_fixed"


class TestList:
    def test_has_the_templates_and_the_tenants_own(self, api, tenant, admin):
        create_role(tenant, key="clerk")
        create_role(create_tenant(), key="foreign")

        everything = api.get(PATH, token=admin).get_json()["data"]
        templates = api.get(f"{PATH}?is_template=true", token=admin).get_json()["data"]
        own = api.get(f"{PATH}?is_template=false", token=admin).get_json()["data"]

        assert {role["key"] for role in templates} == {*ROLE_PERMISSIONS}
        assert [role["key"] for role in own] == ["clerk"]
        assert sorted(role["id"] for role in everything) == sorted(
            role["id"] for role in (*templates, *own)
        )


class TestDelete:
    def test_tells_how_often_it_is_used(self, api, tenant, admin):
        role = create_role(tenant, key="clerk")
        create_role(tenant, inherits="clerk", key="heir")
        _, membership, _ = create_member(tenant)
        create_assignment(tenant, role, membership_id=membership.id)

        answer = api.delete(f"{PATH}/{role.id}", token=admin)

        assert (answer.status_code, answer.get_json()["code"]) == (409, "role_in_use")
        assert "2 times" in answer.get_json()["detail"]

    def test_another_role_takes_its_place(self, api, tenant, admin):
        role, other = create_role(tenant, key="clerk"), create_role(tenant, key="other")
        heir = create_role(tenant, inherits="clerk", key="heir")
        _, membership, _ = create_member(tenant)
        _, second, _ = create_member(tenant)
        create_assignment(tenant, role, membership_id=membership.id)
        create_assignment(tenant, role, membership_id=second.id)
        create_assignment(tenant, other, membership_id=second.id)

        answer = api.delete(f"{PATH}/{role.id}?replace_with=other", token=admin)

        assert answer.status_code == 204
        assert api.get(f"{PATH}/{heir.id}", token=admin).get_json()["data"]["inherits"] == "other"
        left = api.get("/v1/role-assignments", token=admin).get_json()["data"]
        assert sorted((one["membership_id"], one["role"]) for one in left) == sorted(
            (str(one.id), "other") for one in (membership, second)
        )
        api.sequence()
        events = api.get("/v1/events?types=role_assignment.*", token=admin).get_json()["data"]
        assert sorted(event["type"] for event in events) == [
            "role_assignment.deleted",
            "role_assignment.updated",
        ]

    def test_of_two_assignments_the_longer_one_remains(self, api, tenant, admin):
        from datetime import timedelta

        from app.core.clock import utcnow

        role, other = create_role(tenant, key="clerk"), create_role(tenant, key="other")
        members = [create_member(tenant)[1] for _ in range(3)]
        soon, late = utcnow() + timedelta(days=1), utcnow() + timedelta(days=2)
        for member, (old, new) in zip(
            members, [(soon, late), (late, soon), (None, soon)], strict=True
        ):
            create_assignment(tenant, role, membership_id=member.id, expires_at=old)
            create_assignment(tenant, other, membership_id=member.id, expires_at=new)

        api.delete(f"{PATH}/{role.id}?replace_with=other", token=admin)

        rows = database.query("SELECT membership_id, expires_at FROM role_assignments")
        assert dict(rows) == {members[0].id: late, members[1].id: late, members[2].id: None}

    def test_replacement_obeys_the_rule_of_gain(self, api, tenant, admin):
        create_permission("invoices:approve")
        role = create_role(tenant, key="clerk")
        create_role(tenant, "invoices:approve", key="accountant")
        _, membership, _ = create_member(tenant)
        create_assignment(tenant, role, membership_id=membership.id)

        answer = api.delete(f"{PATH}/{role.id}?replace_with=accountant", token=admin)

        assert answer.get_json()["code"] == "role_above_own"

    def test_refuses_itself_unknown_ones_and_its_heir_as_replacement(self, api, tenant, admin):
        role = create_role(tenant, key="clerk")
        create_role(tenant, inherits="clerk", key="heir")

        itself = api.delete(f"{PATH}/{role.id}?replace_with=clerk", token=admin)
        unknown = api.delete(f"{PATH}/{role.id}?replace_with=nobody", token=admin)
        heir = api.delete(f"{PATH}/{role.id}?replace_with=heir", token=admin)

        assert (itself.status_code, unknown.status_code) == (422, 422)
        assert heir.get_json()["code"] == "role_cycle"

    def test_of_a_template_that_tenants_use(self, api, tenant):
        template = create_role(None, key="base")
        create_role(tenant, inherits="base", key="heir")
        create_role(None, key="other")

        refused = api.delete(f"{PATH}/{template.id}", token=platform_token())
        done = api.delete(f"{PATH}/{template.id}?replace_with=other", token=platform_token())

        assert refused.get_json()["code"] == "role_in_use"
        assert done.status_code == 204
        assert database.query("SELECT inherits FROM roles WHERE key = 'heir'") == [("other",)]

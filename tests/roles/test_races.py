"""Two editors at once: nobody gains, and all limits hold, whatever their order."""

from functools import partial
from random import Random

from app.auth.models import ApiKey
from app.roles.models import AccessResource, AccessRole, RoleAssignment
from tests import database
from tests.concurrency import at_once
from tests.factories import (
    create_api_key,
    create_assignment,
    create_member,
    create_permission,
    create_resource,
    create_role,
    create_tenant,
    platform_token,
)

ROLES, ASSIGNMENTS, RESOURCES = "/v1/roles", "/v1/role-assignments", "/v1/resources"


def codes(answers):
    return sorted(answer.status_code for answer in answers)


def editor(tenant, role):
    """An admin who has the role besides, and the assignment."""
    _, membership, token = create_member(tenant, role="admin")
    return token, create_assignment(tenant, role, membership_id=membership.id)


class TestGain:
    def test_who_loses_a_permission_cannot_keep_it_by_a_role_of_their_own(self, api, app):
        create_permission("invoices:approve")
        for number in range(6):
            tenant, random = create_tenant(), Random(number)
            accountant = create_role(tenant, "invoices:approve", key="accountant")
            token, assignment = editor(tenant, accountant)
            _, _, owner = create_member(tenant, role="owner")
            body = {"key": "copy", "name": "x", "permissions": ["invoices:approve"]}
            actions = [
                partial(api.post, ROLES, token=token, json=body),
                partial(api.delete, f"{ASSIGNMENTS}/{assignment.id}", token=owner),
            ]
            random.shuffle(actions)

            answers = at_once(actions)

            made = database.rows(AccessRole, tenant_id=tenant.id, key="copy")
            assert {answer.status_code for answer in answers} <= {201, 204, 403}
            again = api.post(ROLES, token=token, json=body | {"key": "again"})
            assert again.status_code == 403
            changed = made and api.patch(
                f"{ROLES}/{made[0].id}", token=token, json={"name": "mine"}
            )
            assert not changed or changed.status_code == 403

    def test_of_two_who_take_from_each_other_one_has_come_first(self, api, app):
        """Each gives a third person the role, and takes it from the other one."""
        create_permission("invoices:approve")
        for _ in range(4):
            tenant = create_tenant()
            role = create_role(tenant, "invoices:approve", "roles:read", key="accountant")
            (first, of_first), (second, of_second) = editor(tenant, role), editor(tenant, role)
            third = create_member(tenant, role="member")[1]

            answers = at_once(
                [
                    partial(api.delete, f"{ASSIGNMENTS}/{of_second.id}", token=first),
                    partial(
                        api.post,
                        ASSIGNMENTS,
                        token=second,
                        json={"membership_id": str(third.id), "role": "accountant"},
                    ),
                ]
            )

            has = database.rows(RoleAssignment, membership_id=third.id)
            given = answers[1]
            assert answers[0].status_code == 204
            assert (given.status_code, bool(has)) in ((201, True), (403, False))
            assert of_first.id in {one.id for one in database.rows(RoleAssignment)}

    def test_a_role_that_grows_is_not_assigned_by_who_lacks_the_new_permission(self, api, app):
        create_permission("invoices:approve")
        for _ in range(4):
            tenant = create_tenant()
            role = create_role(tenant, key="clerk")
            _, _, owner = create_member(tenant, role="owner")
            token = create_api_key(tenant, ["roles:write"])
            key = database.row(ApiKey, tenant_id=tenant.id)
            path = f"{ROLES}/{role.id}"

            _, given = at_once(
                [
                    partial(api.patch, path, token=owner, json={"permissions": ["users:write"]}),
                    partial(
                        api.post,
                        ASSIGNMENTS,
                        token=token,
                        json={"api_key_id": str(key.id), "role": "clerk"},
                    ),
                ]
            )

            assert given.status_code in (201, 403)
            (grown,) = database.rows(AccessRole, id=role.id)
            if given.status_code == 201:  # it came first, and the owner has given the rest
                (made,) = database.rows(RoleAssignment, api_key_id=key.id)
                assert made.created_at <= grown.updated_at


class TestShape:
    def test_two_roles_do_not_come_to_inherit_each_other(self, api, app):
        for _ in range(4):
            tenant = create_tenant()
            _, _, admin = create_member(tenant, role="admin")
            ids = {key: create_role(tenant, key=key).id for key in ("first", "second")}

            answers = at_once(
                [
                    partial(api.patch, f"{ROLES}/{ids[one]}", token=admin, json={"inherits": other})
                    for one, other in (("first", "second"), ("second", "first"))
                ]
            )

            assert codes(answers) == [200, 409]

    def test_a_tenant_and_the_platform_do_not_make_the_same_key(self, api, app):
        for number in range(4):
            tenant = create_tenant()
            _, _, admin = create_member(tenant, role="admin")
            body = {"key": f"clerk-{number}", "name": "x", "permissions": []}

            answers = at_once(
                [
                    partial(api.post, ROLES, token=token, json=body)
                    for token in (admin, platform_token())
                ]
            )

            assert codes(answers) == [201, 409]

    def test_a_permission_is_not_deleted_while_a_role_gets_it(self, api, app):
        for number in range(4):
            tenant, key = create_tenant(), f"invoices:{number}"
            _, _, owner = create_member(tenant, role="owner")
            create_permission(key)

            answers = at_once(
                [
                    partial(api.delete, f"/v1/permissions/{key}", token=platform_token()),
                    partial(
                        api.post,
                        ROLES,
                        token=owner,
                        json={"key": "clerk", "name": "x", "permissions": [key]},
                    ),
                ]
            )

            assert codes(answers) in ([201, 409], [204, 422])

    def test_a_role_is_not_deleted_while_it_is_assigned(self, api, app):
        for template in (False, True) * 2:
            tenant = create_tenant()
            _, membership, admin = create_member(tenant, role="admin")
            role = create_role(None if template else tenant)
            token = platform_token() if template else admin

            answers = at_once(
                [
                    partial(api.delete, f"{ROLES}/{role.id}", token=token),
                    partial(
                        api.post,
                        ASSIGNMENTS,
                        token=admin,
                        json={"membership_id": str(membership.id), "role": role.key},
                    ),
                ]
            )

            assert codes(answers) in ([201, 409], [204, 404])

    def test_the_limit_of_roles_holds(self, api, app):
        tenant = create_tenant()
        _, _, admin = create_member(tenant, role="admin")
        for _ in range(48):
            create_role(tenant)

        answers = at_once(
            [
                partial(
                    api.post,
                    ROLES,
                    token=admin,
                    json={"key": f"clerk-{number}", "name": "x", "permissions": []},
                )
                for number in range(4)
            ]
        )

        assert codes(answers) == [201, 201, 409, 409]


class TestResources:
    def test_two_do_not_come_to_be_below_each_other(self, api, app):
        for _ in range(4):
            tenant = create_tenant()
            _, _, admin = create_member(tenant, role="admin")
            for name in ("1", "2"):
                create_resource(tenant, "folder", name)

            answers = at_once(
                [
                    partial(
                        api.put,
                        f"{RESOURCES}/folder/{one}",
                        token=admin,
                        json={"parent": {"type": "folder", "id": other}},
                    )
                    for one, other in (("1", "2"), ("2", "1"))
                ]
            )

            assert codes(answers) == [200, 409]

    def test_one_is_not_deleted_while_another_comes_below_it_or_a_role_is_assigned(self, api, app):
        for _ in range(4):
            tenant = create_tenant()
            _, membership, admin = create_member(tenant, role="admin")
            create_resource(tenant, "folder", "1")
            place = {"type": "folder", "id": "1"}
            target = {"membership_id": str(membership.id), "role": "viewer", "resource": place}

            answers = at_once(
                [
                    partial(api.delete, f"{RESOURCES}/folder/1", token=admin),
                    partial(api.put, f"{RESOURCES}/x/1", token=admin, json={"parent": place}),
                    partial(api.post, ASSIGNMENTS, token=admin, json=target),
                ]
            )

            assert codes(answers) in ([200, 201, 409], [204, 404, 404])

    def test_the_same_one_is_registered_once(self, api, app):
        tenant = create_tenant()
        _, _, admin = create_member(tenant, role="admin")

        answers = at_once(
            [
                partial(api.put, f"{RESOURCES}/x/1", token=admin, json={"attributes": {"n": n}})
                for n in range(4)
            ]
        )

        assert codes(answers) == [200] * 4
        (row,) = database.rows(AccessResource)
        assert row.version == 4

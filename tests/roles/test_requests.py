"""What assigned roles allow in /v1, and until when."""

from datetime import timedelta
from itertools import product
from uuid import UUID

import pytest

from app.auth.models import ApiKey
from app.auth.permissions import ASSIGNABLE, GRANTED_BY_PLATFORM, PLATFORM_ONLY, Permission
from app.core.clock import utcnow
from app.memberships.models import Membership
from app.roles.models import AccessResource, RoleAssignment
from app.users.models import User
from tests.concurrency import at_once
from tests.database import execute, row, rows
from tests.factories import (
    create_api_key,
    create_assignment,
    create_member,
    create_role,
    create_tenant,
    create_user,
    platform_token,
    save,
    user_token,
)
from tests.messages import sent_messages
from tests.scim.directory import Directory, create_connection

AUDIT = "/v1/audit-events"
ENDPOINTS = {
    Permission.AUDIT_READ: AUDIT,
    Permission.API_KEYS_READ: "/v1/api-keys",
    Permission.BILLING_READ: "/v1/billing/subscriptions",
    Permission.EVENTS_READ: "/v1/webhook-endpoints",
}


@pytest.fixture
def auditor(tenant):
    """A role that may read the audit trail."""
    return create_role(tenant, Permission.AUDIT_READ, key="auditor")


@pytest.fixture
def viewer(tenant):
    """A viewer's membership, and a token."""
    _, membership, token = create_member(tenant, role="viewer")
    return membership, token


def status(api, token, path=AUDIT):
    return api.get(path, token=token).status_code


def key_of(secret):
    return row(ApiKey, prefix=secret[:8])


def name_resource(tenant):
    by = {"created_by_user_id": "cli:test", "updated_by_user_id": "cli:test"}
    return save(AccessResource, tenant_id=tenant.id, type="project", id="p1", attributes={}, **by)


class TestAnAssignment:
    def test_gives_the_permissions_of_its_role_at_the_next_request(self, api, tenant, auditor):
        _, membership, token = create_member(tenant, role="viewer")

        before = status(api, token)
        assignment = create_assignment(tenant, auditor, membership_id=membership.id)
        during = status(api, token)
        execute("DELETE FROM role_assignments WHERE id = :id", id=assignment.id)

        assert (before, during, status(api, token)) == (403, 200, 403)

    def test_gives_the_permissions_that_its_role_inherits(self, api, tenant, auditor, viewer):
        membership, token = viewer
        inherits = "auditor"
        for _ in range(4):
            role = create_role(tenant, "invoices:approve", inherits=inherits)
            inherits = role.key
        create_assignment(tenant, role, membership_id=membership.id)

        assert status(api, token) == 200
        execute("UPDATE roles SET inherits = NULL WHERE inherits = 'auditor'")
        assert status(api, token) == 403

    def test_of_a_template_gives_its_permissions(self, api, tenant, viewer):
        membership, token = viewer
        role = create_role(None, Permission.AUDIT_READ)
        create_assignment(tenant, role, membership_id=membership.id)

        assert status(api, token) == 200

    def test_gives_nothing_to_others_of_the_tenant(self, api, tenant, viewer, auditor):
        create_assignment(tenant, auditor, membership_id=viewer[0].id)
        secret = create_api_key(tenant, [Permission.USERS_READ])

        assert status(api, create_member(tenant, role="member")[2]) == 403
        assert status(api, secret) == 403

    def test_gives_nothing_to_the_same_person_in_another_tenant(self, api, tenant, auditor):
        user, membership, _ = create_member(tenant, role="viewer")
        create_assignment(tenant, auditor, membership_id=membership.id)
        other = create_tenant()
        there, membership, token = create_member(other, "viewer", idp_user_id=user.idp_user_id)
        create_assignment(other, create_role(other), membership_id=membership.id)

        assert there.idp_user_id == user.idp_user_id
        assert status(api, token) == 403

    def test_of_another_tenants_role_gives_nothing(self, api, tenant, viewer):
        foreign = create_role(create_tenant(), Permission.AUDIT_READ)
        create_assignment(tenant, foreign, membership_id=viewer[0].id)

        assert status(api, viewer[1]) == 403

    def test_of_a_role_that_inherits_another_tenants_key_gives_nothing(self, api, tenant, viewer):
        foreign = create_role(create_tenant(), Permission.AUDIT_READ, key="foreign")
        role = create_role(tenant, inherits=foreign.key)
        create_assignment(tenant, role, membership_id=viewer[0].id)

        assert status(api, viewer[1]) == 403

    @pytest.mark.parametrize("permission", sorted(PLATFORM_ONLY | GRANTED_BY_PLATFORM))
    def test_never_gives_what_only_the_platform_has_or_grants(self, api, tenant, permission):
        user, membership, _ = create_member(tenant, role="owner")
        secret = create_api_key(tenant)
        role = create_role(tenant, permission)
        create_assignment(tenant, role, membership_id=membership.id)
        create_assignment(tenant, role, api_key_id=key_of(secret).id)
        path = {"usage:write": "/v1/usage/consume"}.get(permission, "/v1/webhooks/events")
        body = {"feature": "calls", "amount": 1}

        for token in (user_token(user), secret):
            answer = (
                api.post(path, token=token, json=body)
                if permission in GRANTED_BY_PLATFORM
                else api.get(path, token=token)
            )
            assert answer.status_code == 403, answer.text
            assert api.get("/v1/tenants", token=token).status_code in (200, 403)
            shown = api.get("/v1/tenants", token=token).get_json()
            assert len(shown.get("data", [])) <= 1

    def test_costs_no_further_round_trip(self, api, tenant, viewer, auditor):
        create_assignment(tenant, auditor, membership_id=viewer[0].id)

        with sent_messages() as messages:
            api.get(f"/v1/users/{viewer[0].user_id}", token=viewer[1])

        assert messages == ["auth.authenticate_user", "users.get", "COMMIT"]


class TestRank:
    """Where roles are compared, only an assigned owner counts."""

    def test_is_not_raised_by_another_role(self, api, tenant, viewer):
        create_assignment(tenant, "admin", membership_id=viewer[0].id)
        other = create_member(tenant, role="viewer")[1]

        answer = api.patch(f"/v1/memberships/tenant/{other.id}/role?role=member", token=viewer[1])

        assert (answer.status_code, answer.get_json()["code"]) == (403, "role_above_own")

    def test_is_not_raised_by_a_role_that_inherits_the_owners(self, api, tenant, viewer):
        role = create_role(tenant, inherits="owner")
        create_assignment(tenant, role, membership_id=viewer[0].id)
        owner = create_member(tenant, role="owner")[1]

        answer = api.patch(f"/v1/memberships/tenant/{owner.id}/role?role=member", token=viewer[1])

        assert (answer.status_code, answer.get_json()["code"]) == (403, "owner_only")

    @pytest.mark.parametrize("kind", ["member", "key"])
    def test_of_an_assigned_owner_is_that_of_an_owner(self, api, tenant, viewer, kind):
        owner = create_member(tenant, role="owner")[1]
        create_member(tenant, role="owner")
        token = create_api_key(tenant) if kind == "key" else viewer[1]
        target = (
            {"api_key_id": key_of(token).id} if kind == "key" else {"membership_id": viewer[0].id}
        )
        create_assignment(tenant, "owner", **target)

        answer = api.patch(f"/v1/memberships/tenant/{owner.id}/role?role=admin", token=token)

        assert answer.status_code == 200, answer.text

    @pytest.mark.parametrize("way", ["member", "group"])
    def test_only_an_owner_changes_an_assigned_owner(self, app, api, tenant, way):
        create_member(tenant, role="owner")
        admin = create_member(tenant, role="admin")[2]
        if way == "group":
            directory = Directory(app, create_connection(tenant)[1])
            user_id = directory.add_user("ada@example.com")["id"]
            group = directory.add_group("Chiefs", user_id)
            create_assignment(tenant, "owner", group_id=UUID(group["id"]))
        else:
            user, membership, _ = create_member(tenant, role="member")
            user_id = user.id
            create_assignment(tenant, "owner", membership_id=membership.id)
        membership_id = row(Membership, user_id=user_id).id
        path = f"/v1/memberships/tenant/{membership_id}"

        answers = [
            api.patch(f"/v1/users/{user_id}", token=admin, json={"is_active": False}),
            api.patch(f"{path}/active?is_active=false", token=admin),
            api.patch(f"{path}/role?role=viewer", token=admin),
        ]

        assert [answer.get_json()["code"] for answer in answers] == ["owner_only"] * 3


class TestKeys:
    def test_without_permissions_have_those_of_their_roles(self, api, tenant, auditor):
        token = create_member(tenant, role="owner")[2]
        body = {"name": "audit", "permissions": []}
        made = api.post("/v1/api-keys", token=token, json=body).get_json()["data"]
        before = status(api, made["secret"])
        create_assignment(tenant, auditor, api_key_id=UUID(made["id"]))

        assert (before, status(api, made["secret"])) == (403, 200)

    def test_of_another_tenant_get_nothing_by_a_foreign_assignment(self, api, tenant, auditor):
        secret = create_api_key(create_tenant())
        create_assignment(tenant, auditor, api_key_id=key_of(secret).id)

        assert status(api, secret) == 403

    def test_of_the_platform_get_nothing_by_an_assignment(self, api, tenant, auditor):
        secret = create_api_key(None, [Permission.USERS_READ])
        create_assignment(tenant, auditor, api_key_id=key_of(secret).id)

        assert status(api, secret) == 403


class TestGroups:
    @pytest.fixture
    def directory(self, app, tenant):
        create_member(tenant, role="owner")
        return Directory(app, create_connection(tenant)[1])

    @pytest.fixture
    def ada(self, directory):
        user_id = directory.add_user("ada@example.com")["id"]
        return user_id, user_token(row(User, id=user_id))

    @pytest.fixture
    def group(self, directory, tenant, auditor):
        made = directory.add_group("Auditors")
        create_assignment(tenant, auditor, group_id=UUID(made["id"]))
        return made

    def add(self, directory, group, member_id):
        operation = {"op": "add", "path": "members", "value": [{"value": member_id}]}
        return directory.patch(f"/Groups/{group['id']}", operation)

    def test_give_their_roles_to_members_at_once(self, api, directory, group, ada):
        user_id, token = ada
        statuses = [status(api, token)]
        self.add(directory, group, user_id)
        statuses.append(status(api, token))
        directory.patch(f"/Groups/{group['id']}", {"op": "remove", "path": "members"})
        statuses.append(status(api, token))

        assert statuses == [403, 200, 403]

    def test_that_are_deleted_give_nothing(self, api, directory, group, ada):
        self.add(directory, group, ada[0])
        before = status(api, ada[1])

        directory.delete(f"/Groups/{group['id']}")

        assert (before, status(api, ada[1])) == (200, 403)
        assert rows(RoleAssignment) == []

    def test_give_nothing_to_whom_the_directory_has_ended(self, api, directory, group, ada):
        self.add(directory, group, ada[0])

        directory.delete(f"/Users/{ada[0]}")

        assert api.get(AUDIT, token=ada[1]).get_json()["code"] == "no_membership"

    def test_give_nothing_again_to_whom_it_provisions_again(self, api, directory, group, ada):
        self.add(directory, group, ada[0])
        directory.delete(f"/Users/{ada[0]}")
        again = directory.add_user("ada@example.com")["id"]

        assert again == ada[0]
        assert status(api, ada[1]) == 403

    def test_give_nothing_to_members_of_groups_in_them(self, api, directory, group, ada):
        inner = directory.add_group("Inner", ada[0])

        self.add(directory, group, inner["id"])

        assert status(api, ada[1]) == 403


class TestRaces:
    """Each request is judged by one moment."""

    WAYS = (
        "UPDATE users SET is_active = false WHERE id = :user_id",
        "UPDATE memberships SET is_active = false WHERE user_id = :user_id",
        "UPDATE tenants SET is_active = false WHERE id = :tenant_id",
        "UPDATE role_assignments SET expires_at = now() WHERE tenant_id = :tenant_id",
        "DELETE FROM role_assignments WHERE tenant_id = :tenant_id",
        "UPDATE roles SET permissions = '{}' WHERE tenant_id = :tenant_id",
    )

    @pytest.mark.parametrize("way", WAYS)
    def test_who_asks_while_it_ends_is_allowed_before_or_refused_after(self, api, way):
        for _ in range(3):
            tenant = create_tenant()
            user, membership, token = create_member(tenant, role="viewer")
            role = create_role(tenant, Permission.USERS_WRITE)
            create_assignment(tenant, role, membership_id=membership.id)
            target = create_user(tenant)
            ids = {"user_id": user.id, "tenant_id": tenant.id}
            used = {name: id_ for name, id_ in ids.items() if f":{name}" in way}

            def ask(target=target, token=token):
                path, body = f"/v1/users/{target.id}", {"first_name": "Changed"}
                return api.patch(path, token=token, json=body).status_code

            def end(used=used):
                execute(way, **used)
                return ask()

            *asked, after = at_once([ask, ask, ask, end])

            assert after == 403
            assert set(asked) <= {200, 403}
            assert ask() == 403


class TestExplain:
    """The explanation is what the endpoints answer."""

    def ask(self, api, permission, **query):
        query = {"permission": permission, **query}
        answer = api.get("/v1/access/explain", token=platform_token(), query_string=query)
        assert answer.status_code == 200, answer.text
        return answer.get_json()["data"]

    @pytest.mark.parametrize("permission", ENDPOINTS)
    @pytest.mark.parametrize("given", [*ENDPOINTS, "owner", "inherits", "expired", "resource"])
    def test_of_assigned_roles_is_the_real_answer(self, api, permission, given):
        wrong = []
        for tenant_state, member_state, of_key in product([True, False], repeat=3):
            tenant = create_tenant(is_active=tenant_state)
            user, membership, token = create_member(tenant, role="viewer")
            execute(
                "UPDATE memberships SET is_active = :state WHERE id = :id",
                state=member_state,
                id=membership.id,
            )
            values = {"membership_id": membership.id}
            if of_key:
                token = create_api_key(tenant)
                values = {"api_key_id": key_of(token).id}
            role = "owner" if given == "owner" else create_role(tenant, given)
            if given not in ENDPOINTS and given != "owner":
                role = create_role(tenant, *ASSIGNABLE)
            if given == "inherits":
                role = create_role(tenant, inherits=role.key)
            if given == "expired":
                values["expires_at"] = utcnow() - timedelta(seconds=1)
            if given == "resource":
                named = name_resource(tenant)
                values |= {"resource_type": named.type, "resource_id": named.id}
            create_assignment(tenant, role, **values)
            whose = {"key_id": values["api_key_id"]} if of_key else {"user_id": user.id}

            told = self.ask(api, permission, **whose)

            answer = api.get(ENDPOINTS[permission], token=token)
            real = answer.status_code, answer.get_json().get("code", "")
            if (told["status"], told["reason"]) != real:
                wrong.append((tenant_state, member_state, of_key, told, real))

        assert wrong == []

    def test_names_the_role_and_the_assignment_that_decide(self, api, tenant, viewer, auditor):
        assignment = create_assignment(tenant, auditor, membership_id=viewer[0].id)

        told = self.ask(api, Permission.AUDIT_READ, user_id=viewer[0].user_id)

        steps = {step["step"]: step for step in told["steps"]}
        assert steps["role"]["found"].endswith("Roles are assigned for the whole tenant: auditor.")
        assert steps["permission"]["found"] == (
            "The assigned role auditor has the permission audit:read."
        )
        assert steps["permission"]["row_id"] == str(assignment.id)

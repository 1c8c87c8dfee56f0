"""/v1/scim-connections, and the tokens that it gives."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from app.audit.models import AuditEvent
from app.auth.permissions import Permission, Role
from app.connections.models import ScimConnection, ScimRequest
from tests.concurrency import at_once
from tests.database import execute, row, rows
from tests.factories import (
    create_api_key,
    create_member,
    create_permission,
    create_role,
    create_tenant,
)
from tests.scim.directory import Directory, create_connection

PATH = "/v1/scim-connections"


@pytest.fixture
def token(owner):
    return owner[2]


def make(api, token, path=PATH, **values):
    return api.post(path, token=token, json={"name": "Okta", "provider": "okta", **values})


def made(api, token, **values):
    answer = make(api, token, **values)
    assert answer.status_code == 201, answer.text
    return answer.get_json()["data"]


class TestCreate:
    def test_shows_the_token_this_once(self, app, api, token):
        answer = make(api, token, group_roles={"Finance": "billing"})

        created = answer.get_json()["data"]
        secret = created.pop("token")
        shown = api.get(answer.headers["Location"], token=token).get_json()["data"]
        assert secret.startswith("scim_")
        assert secret.startswith(created["prefix"])
        assert shown == created
        assert created["group_roles"] == {"Finance": "billing"}
        assert (created["default_role"], created["deactivate"]) == ("member", "membership")
        assert (created["status"], created["acts_as"]) == ("active", "owner")
        assert Directory(app, secret).get("/Users").status_code == 200

    def test_that_is_testing_only_reads(self, app, api, token):
        created = made(api, token, status="testing")
        path, directory = f"{PATH}/{created['id']}", Directory(app, created["token"])

        assert directory.get("/Users").status_code == 200
        refused = directory.post("/Users", {"userName": "ada"})
        assert refused.status_code == 403
        assert "before its test" in refused.get_json()["detail"]
        tested = api.post(f"{path}/test", token=token).get_json()["data"]
        assert tested["has_passed"], tested
        shown = api.get(path, token=token).get_json()["data"]
        assert (shown["status"], shown["user_count"]) == ("testing", 0)
        api.patch(path, token=token, json={"status": "active"})
        assert directory.post("/Users", {"userName": "ada"}).status_code == 201

    def test_stores_the_tokens_nowhere(self, api, token):
        first = made(api, token)
        second = TestRotate().rotate(api, token, first)

        created, rotated = rows(AuditEvent)
        stored = repr([*rows(ScimConnection), created, rotated])
        assert first["token"] not in stored
        assert second not in stored
        assert (created.action, rotated.action) == (
            "scim_connection.created",
            "scim_connection.rotated",
        )
        assert row(ScimConnection).digest not in repr((created, rotated))

    @pytest.mark.parametrize(
        ("name", "value", "place"),
        [
            ("provider", "ldap", []),
            ("group_roles", {"A": "emperor"}, ["A"]),
            ("group_roles", {"A": 7}, ["A"]),
            ("group_roles", [], []),
            ("group_roles", {"": "member"}, [""]),
            ("group_roles", dict.fromkeys(map(str, range(201)), "member"), []),
            ("deactivate", "nothing", []),
            ("acts_as", "owner", []),
        ],
    )
    def test_refuses_what_is_not_valid(self, api, token, name, value, place):
        answer = make(api, token, **{name: value})

        assert answer.status_code == 422
        assert answer.get_json()["detail"][0]["loc"] == ["body", name, *place]

    def test_allows_ten_also_when_two_come_at_once(self, api, tenant, token):
        for number in range(9):
            create_connection(tenant, name=f"{number}")

        answers = at_once([lambda: make(api, token)] * 2)

        assert sorted(answer.status_code for answer in answers) == [201, 409]


class TestRolesOfGroups:
    """A role that is none of the five is mapped by who could assign it."""

    def test_can_be_the_tenants_own_and_templates(self, api, tenant, token):
        create_role(tenant, key="clerk")
        create_role(None, key="auditor")
        roles = {"Finance": "clerk", "Others": "auditor"}

        assert made(api, token, group_roles=roles)["group_roles"] == roles

    def test_of_another_tenant_does_not_exist(self, api, token):
        create_role(create_tenant(), key="clerk")

        answer = make(api, token, group_roles={"Finance": "clerk"})

        assert answer.get_json()["detail"][0]["loc"] == ["body", "group_roles", "Finance"]

    @pytest.mark.parametrize("of_admin", [True, False])
    def test_cannot_be_more_than_the_editor_has(self, api, tenant, token, of_admin):
        create_permission("payroll:run")
        create_role(tenant, "payroll:run", key="payroll")
        create_role(tenant, key="chiefs", assignable_by="owner")
        editor = create_member(tenant, role="admin")[2] if of_admin else token
        path = f"{PATH}/{made(api, editor)['id']}"

        for role in ("payroll", "chiefs"):
            answer = api.patch(path, token=editor, json={"group_roles": {"A": role}})
            assert answer.status_code == (403 if of_admin else 200), answer.text

    def test_need_the_permission_to_assign_roles(self, api, tenant):
        create_role(tenant, key="clerk")
        keys = [
            create_api_key(tenant, (*NEEDED, *more)) for more in ((), (Permission.ROLES_WRITE,))
        ]

        answers = [make(api, key, group_roles={"A": "clerk"}) for key in keys]

        assert [answer.status_code for answer in answers] == [403, 201]


NEEDED = (Permission.SCIM_WRITE, Permission.USERS_WRITE, Permission.MEMBERSHIPS_WRITE)
LACKING = [tuple(one for one in NEEDED if one != lacking) for lacking in NEEDED]
SUPERADMIN = (*NEEDED, Permission.SUPERADMIN)
GIFTS = {
    "create": ("POST", "", {"name": "Okta"}),
    "create admins": ("POST", "", {"name": "Okta", "default_role": "admin"}),
    "create owners": ("POST", "", {"name": "Okta", "group_roles": {"Chiefs": "owner"}}),
    "rename": ("PATCH", "/{id}", {"name": "New"}),
    "change the default role": ("PATCH", "/{id}", {"default_role": "admin"}),
    "make owners": ("PATCH", "/{id}", {"default_role": "owner"}),
    "map groups": ("PATCH", "/{id}", {"group_roles": {"A": "viewer"}}),
    "map owners": ("PATCH", "/{id}", {"group_roles": {"A": "owner"}}),
    "add a key": ("PATCH", "/{id}", {"public_keys": []}),
    "rotate": ("POST", "/{id}/rotate", {}),
    "delete": ("DELETE", "/{id}", None),
}


@pytest.mark.parametrize("gift", GIFTS)
class TestRightsOfConnections:
    """A connection never gives more than its creator's own permissions."""

    def test_of_a_key(self, api, tenant, gift):
        keys = [*product([False, True], [NEEDED, *LACKING]), (True, SUPERADMIN)]
        for (of_platform, held), acts_as in product(keys, ["admin", "owner"]):
            secret = create_api_key(None if of_platform else tenant, held)
            answer = self.give(api, tenant, secret, gift, acts_as, of_platform=of_platform)

            is_superadmin = held == SUPERADMIN
            is_small = gift in ("rename", "delete") and Permission.SCIM_WRITE in held
            is_enough = set(NEEDED) <= set(held) or is_small
            touches_owner = acts_as == "owner" and not gift.startswith("create")
            may = is_superadmin or (is_enough and "owners" not in gift and not touches_owner)
            said = (of_platform, held, acts_as, answer.text)
            assert (answer.status_code < 300) == may, said
            assert may or answer.status_code == 403, said
            if may and gift.startswith("create"):
                expected = "owner" if is_superadmin else "admin"
                assert answer.get_json()["data"]["acts_as"] == expected, said

    def test_of_a_person(self, api, tenant, gift):
        for role, acts_as in product(Role, ["admin", "owner"]):
            person = create_member(tenant, role=role)[2]

            answer = self.give(api, tenant, person, gift, acts_as)

            touches_owner = acts_as == "owner" and not gift.startswith("create")
            is_small = "owners" not in gift and not touches_owner
            may = role == "owner" or (role == "admin" and is_small)
            said = (role, acts_as, answer.text)
            assert (answer.status_code < 300) == may, said
            assert may or answer.status_code == 403, said
            if role == "admin" and not may:
                code = "owner_only" if touches_owner else "role_above_own"
                assert answer.get_json()["code"] == code, said

    def give(self, api, tenant, credential, gift, acts_as, *, of_platform=False):
        """Try it on the only connection, or beside it."""
        execute("DELETE FROM scim_connections")
        method, path, body = GIFTS[gift]
        connection, _ = create_connection(tenant, acts_as=acts_as)
        query = f"?tenant_id={tenant.id}" if of_platform and not path else ""
        url = f"{PATH}{path.format(id=connection.id)}{query}"
        return api.request(method, url, token=credential, json=body)


class TestRotate:
    def rotate(self, api, token, connection, **body):
        path = f"{PATH}/{connection['id']}/rotate"
        return api.post(path, token=token, json=body).get_json()["data"]["token"]

    def works(self, app, *secrets):
        return [Directory(app, secret).get("/Users").status_code == 200 for secret in secrets]

    def test_leaves_two_valid(self, app, api, token):
        first = made(api, token)

        second = self.rotate(api, token, first)
        both = self.works(app, first["token"], second)
        third = self.rotate(api, token, first)

        assert both == [True, True]
        assert self.works(app, first["token"], second, third) == [False, True, True]

    @pytest.mark.parametrize("hours", [0, 1])
    def test_ends_the_old_one_after_the_overlap(self, app, api, token, hours):
        first = made(api, token)

        second = self.rotate(api, token, first, overlap_hours=hours)
        if hours:
            execute("UPDATE scim_connections SET old_expires_at = now() - interval '1 second'")

        assert self.works(app, first["token"], second) == [False, True]


class TestDelete:
    def test_ends_the_token_and_leaves_the_people(self, app, api, token):
        created = made(api, token)
        directory = Directory(app, created["token"])
        user = directory.add_user("ada@example.com")

        answer = api.delete(f"{PATH}/{created['id']}", token=token)

        assert answer.status_code == 204
        assert directory.get("/Users").status_code == 401
        assert api.get(f"/v1/users/{user['id']}", token=token).get_json()["data"]["is_active"]


class TestActivity:
    def test_counts_people_requests_and_errors(self, app, api, token):
        created = made(api, token)
        directory = Directory(app, created["token"])
        started = datetime.now(UTC) - timedelta(seconds=1)

        user = directory.add_user("ada@example.com")
        directory.add_group("Finance", user["id"])
        directory.post("/Users", {"schemas": [], "userName": "Ada@example.com"})
        directory.find('userName eq "ada@example.com"')

        shown = api.get(f"{PATH}/{created['id']}", token=token).get_json()["data"]
        assert (shown["user_count"], shown["group_count"]) == (1, 1)
        assert (shown["request_count"], shown["error_count"]) == (4, 1)
        assert shown["last_error"].startswith("POST /Users: 40")
        assert datetime.fromisoformat(shown["last_request_at"]) > started
        assert shown["updated_at"] == created["updated_at"]

    def test_keeps_the_last_hundred_requests_without_values(self, app, connection, directory):
        for _ in range(102):
            directory.find('userName eq "secret@example.com" and active eq true')

        kept = rows(ScimRequest, connection_id=connection[0].id)
        assert len(kept) == 100
        assert {one.path for one in kept} == {"/Users?filter=userName eq … and active eq true"}

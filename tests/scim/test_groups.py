"""/scim/v2/Groups: members, and the roles that they get."""

import pytest

from app.audit.models import AuditEvent
from app.memberships.models import Membership
from app.roles.models import AccessRole, RoleAssignment
from app.scim.models import ScimGroup, ScimMember
from app.users.models import User
from tests.concurrency import at_once
from tests.database import execute, row, rows
from tests.factories import create_assignment, create_role, create_tenant
from tests.scim.directory import (
    GROUP,
    USER,
    Directory,
    add_members,
    as_members,
    create_connection,
    remove_member,
    replace,
)

ROLES = {"Finance": "billing", "Chiefs": "owner", "ext-9": "admin"}


@pytest.fixture
def connection(tenant, owner):
    return create_connection(tenant, group_roles=ROLES)


@pytest.fixture
def ada(directory):
    return directory.add_user("ada@example.com")["id"]


def role_of(user_id):
    return row(Membership, user_id=user_id).role


def other_tenant(user_id):
    return row(User, id=user_id).tenant_id


class TestGroups:
    def test_have_members_with_references(self, directory, ada):
        made = directory.add_group("Engineers", ada)

        (shown,) = directory.get(f"/Groups/{made['id']}").get_json()["members"]
        groups = directory.get(f"/Users/{ada}").get_json()["groups"]
        assert (shown["value"], shown["type"]) == (ada, "User")
        assert shown["$ref"].endswith(f"/scim/v2/Users/{ada}")
        assert [one["display"] for one in groups] == ["Engineers"]

    def test_can_be_members_of_groups(self, directory, ada):
        inner = directory.add_group("Inner", ada)
        outer = directory.add_group("Outer", inner["id"])

        assert [one["type"] for one in outer["members"]] == ["Group"]

    def test_of_one_name_that_come_at_once_make_one(self, directory, ada):
        body = {"schemas": [GROUP], "displayName": "A", "members": [{"value": ada}]}

        answers = at_once([lambda: directory.post("/Groups", body)] * 4)

        assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]
        assert directory.get("/Groups").get_json()["totalResults"] == 1

    def test_leave_out_members_whom_the_directory_has_not_provisioned(
        self, app, directory, tenant, owner, ada
    ):
        other = Directory(app, create_connection(create_tenant())[1])
        foreign = other.add_user("eve")["id"]

        made = directory.add_group("Chiefs", foreign, str(owner[0].id), "x", ada)

        assert [one["value"] for one in made["members"]] == [ada]
        assert {one.role for one in rows(Membership, tenant_id=other_tenant(foreign))} == {"member"}
        assert len(rows(ScimMember)) == 1

    def test_have_another_version_after_a_change_only(self, directory, ada):
        made = directory.add_group("G", ada)
        path, body = f"/Groups/{made['id']}", {"displayName": "G", "members": as_members(ada)}

        same = directory.put(path, {"schemas": [GROUP], **body})
        changed = directory.patch(path, replace("members", []))

        assert same.headers["ETag"] == made["meta"]["version"] != changed.headers["ETag"]
        assert rows(ScimMember) == []

    def test_lose_a_member_who_is_deleted(self, directory, ada):
        made = directory.add_group("G", ada)

        directory.delete(f"/Users/{ada}")

        assert "members" not in directory.get(f"/Groups/{made['id']}").get_json()

    def test_of_writers_at_once_lose_no_member(self, directory):
        path = f"/Groups/{directory.add_group('G')['id']}"
        ids = [directory.add_user(f"u{number}")["id"] for number in range(4)]

        answers = at_once([lambda one=one: directory.patch(path, add_members(one)) for one in ids])

        assert [answer.status_code for answer in answers] == [200] * 4
        assert len(rows(ScimMember)) == 4


class TestRolesBesidesTheFive:
    """They are assigned to the group itself, with the source ``scim``."""

    @pytest.fixture
    def connection(self, tenant, owner):
        create_role(tenant, "audit:read", key="auditor")
        create_role(None, key="clerk")
        roles = {"Finance": "auditor", "ext-9": "clerk", "Chiefs": "admin", "A": "gone"}
        return create_connection(tenant, group_roles=roles)

    def assigned(self):
        keys = {role.id: role.key for role in rows(AccessRole)}
        return {keys[one.role_id]: (one.source, str(one.group_id)) for one in rows(RoleAssignment)}

    def test_begin_and_end_with_the_mapping_of_the_group(self, directory, ada):
        path = f"/Groups/{directory.add_group('finance', ada)['id']}"
        group_id, found = path.rpartition("/")[2], [self.assigned()]
        for name, value in (("externalId", "ext-9"), ("displayName", "Chiefs")):
            directory.patch(path, replace(name, value))
            found.append(self.assigned())

        auditor, clerk = {"auditor": ("scim", group_id)}, {"clerk": ("scim", group_id)}
        assert found == [auditor, auditor | clerk, clerk]
        assert role_of(ada) == "admin"
        directory.delete(path)
        assert self.assigned() == {}
        actions = [one.action for one in rows(AuditEvent) if one.action.startswith("role_ass")]
        assert sorted(actions) == ["role_assignment.created"] * 2 + ["role_assignment.deleted"] * 2

    def test_follow_another_mapping_when_the_group_changes(self, directory):
        path = f"/Groups/{directory.add_group('Finance')['id']}"
        execute("""UPDATE scim_connections SET group_roles = '{"Finance": "clerk"}'""")

        directory.patch(path, replace("externalId", "x"))

        assert {*self.assigned()} == {"clerk"}

    def test_that_were_assigned_by_the_api_stay(self, tenant, directory):
        group = directory.add_group("Others")
        role = row(AccessRole, key="auditor")
        create_assignment(tenant, role, group_id=group["id"])

        for name in ("Finance", "Others"):
            directory.patch(f"/Groups/{group['id']}", replace("displayName", name))

        assert self.assigned() == {"auditor": ("api", group["id"])}


class TestRoles:
    @pytest.mark.parametrize(
        ("name", "is_member", "give", "take"),
        [
            ("Others", True, lambda _: replace("displayName", "Finance"),
             lambda _: replace("displayName", "Others")),
            ("Finance", False, add_members, remove_member),
        ],
    )  # fmt: skip
    def test_follow_the_name_and_the_members(self, directory, ada, name, is_member, give, take):
        made = directory.add_group(name, *([ada] if is_member else []))
        roles = [role_of(ada)]

        for operation in (give(ada), take(ada)):
            directory.patch(f"/Groups/{made['id']}", operation)
            roles.append(role_of(ada))

        assert roles == ["member", "billing", "member"]

    def test_are_the_highest_of_several_groups(self, directory, ada):
        directory.add_group("Finance", ada)
        directory.add_group("Operators", ada, externalId="ext-9")

        assert role_of(ada) == "admin"

    def test_of_groups_that_give_none_stay(self, directory, ada):
        execute("UPDATE memberships SET role = 'viewer' WHERE user_id = CAST(:id AS uuid)", id=ada)

        directory.add_group("Others", ada)

        assert role_of(ada) == "viewer"

    def test_keep_the_last_owner(self, directory, owner):
        user = owner[0]
        made = directory.add_user("owner", externalId=user.idp_user_id)
        directory.add_group("Finance")
        before = rows(ScimGroup)

        found = directory.find('displayName eq "Finance"', at="/Groups")["Resources"][0]
        answer = directory.patch(
            f"/Groups/{found['id']}", replace("members", as_members(made["id"]))
        )

        assert answer.status_code == 409
        assert (
            answer.get_json()["detail"]
            == "A tenant must have at least one active owner; make another member owner first."
        )
        assert role_of(user.id) == "owner"
        assert (rows(ScimMember), rows(ScimGroup)) == ([], before)

    def test_are_checked_again_when_they_are_applied(self, app, directory, ada):
        execute("UPDATE scim_connections SET acts_as = 'admin'")

        answer = directory.post(
            "/Groups", {"schemas": [GROUP], "displayName": "Chiefs", "members": as_members(ada)}
        )

        assert answer.status_code == 403
        assert role_of(ada) == "member"
        assert rows(ScimGroup) == []


class TestBulk:
    def user(self, name, **values):
        data = {"schemas": [USER], "userName": name}
        return {"method": "POST", "path": "/Users", "bulkId": name, "data": data, **values}

    def test_references_what_it_creates(self, directory):
        group = {"schemas": [GROUP], "displayName": "Finance", "members": as_members("bulkId:ada")}

        answer = directory.bulk(
            self.user("ada"),
            {"method": "POST", "path": "/Groups", "bulkId": "g", "data": group},
        )

        statuses = [one["status"] for one in answer.get_json()["Operations"]]
        assert statuses == ["201", "201"]
        assert {one.role for one in rows(Membership)} == {"owner", "billing"}

    def test_leaves_nothing_of_a_failed_operation(self, directory):
        directory.add_user("bob")

        answer = directory.bulk(
            self.user("ada"),
            self.user("BOB"),
            {"method": "DELETE", "path": "/Users/00000000-0000-0000-0000-000000000000"},
            {"method": "PATCH", "path": "/Nothing/1", "data": {}},
            self.user("cyd"),
        )

        operations = answer.get_json()["Operations"]
        assert [one["status"] for one in operations] == ["201", "409", "404", "404", "201"]
        assert operations[1]["response"]["scimType"] == "uniqueness"
        assert directory.get("/Users").get_json()["totalResults"] == 3

    def test_stops_after_the_errors_that_are_allowed(self, directory):
        directory.add_user("bob")

        answer = directory.bulk(self.user("bob"), self.user("ada"), failOnErrors=1)

        assert len(answer.get_json()["Operations"]) == 1

    def test_of_a_suspended_tenant_only_ends_people(self, directory, tenant, ada):
        execute("UPDATE tenants SET is_active = false WHERE id = :id", id=tenant.id)

        answer = directory.bulk(self.user("eve"), {"method": "DELETE", "path": f"/Users/{ada}"})

        assert [one["status"] for one in answer.get_json()["Operations"]] == ["403", "204"]

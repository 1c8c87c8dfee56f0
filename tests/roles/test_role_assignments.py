"""/v1/role-assignments, and the end of assignments."""

from datetime import timedelta
from uuid import uuid4

import pytest

from app.auth.models import ApiKey
from app.core.clock import rfc3339, utcnow
from app.roles import role_assignments
from app.roles.jobs import remove_ended
from app.roles.models import AccessRole, RoleAssignment
from tests import database
from tests.factories import (
    create_api_key,
    create_assignment,
    create_member,
    create_permission,
    create_resource,
    create_role,
    create_tenant,
    platform_token,
    save,
)
from tests.scim.directory import Directory, create_connection

PATH = "/v1/role-assignments"


def create_group(tenant, *users):
    """A SCIM group with these members."""
    connection = {
        "name": "Okta", "provider": "okta", "default_role": "member", "acts_as": "owner",
        "digest": str(uuid4()), "prefix": "x", "last_error": "",
    }  # fmt: skip
    from app.connections.models import ScimConnection
    from app.scim.models import ScimGroup, ScimMember, ScimUser
    from tests.factories import BY_COMMAND

    made = save(ScimConnection, tenant_id=tenant.id, **connection, **BY_COMMAND)
    own = {"tenant_id": tenant.id, "connection_id": made.id}
    group = save(ScimGroup, **own, display_name="Crew", display_name_key="crew")
    for user in users:
        save(ScimUser, **own, id=user.id, user_name=user.email, user_name_key=user.email)
        member = {"group_id": group.id, "member_id": user.id, "user_id": user.id}
        save(ScimMember, tenant_id=tenant.id, **member)
    return group


@pytest.fixture
def membership(tenant):
    return create_member(tenant, role="member")[1]


class TestCreate:
    def test_gives_a_membership_a_role(self, api, tenant, admin, membership):
        create_role(tenant, key="clerk")

        answer = api.post(
            PATH, token=admin, json={"membership_id": str(membership.id), "role": "clerk"}
        )

        assert answer.status_code == 201
        made = answer.get_json()["data"]
        assert api.get(answer.headers["Location"], token=admin).get_json()["data"] == made
        assert api.get(PATH, token=admin).get_json()["data"] == [made]
        names = (
            "membership_id",
            "group_id",
            "api_key_id",
            "role",
            "resource",
            "expires_at",
            "source",
        )
        assert [made[name] for name in names] == [
            str(membership.id),
            None,
            None,
            "clerk",
            None,
            None,
            "api",
        ]

    def test_for_a_resource_until_a_moment(self, api, tenant, admin, membership):
        create_resource(tenant, "project", "apollo")
        body = {
            "membership_id": str(membership.id),
            "role": "viewer",
            "resource": {"type": "project", "id": "apollo"},
            "expires_at": "2099-01-01T00:00:00Z",
        }

        made = api.post(PATH, token=admin, json=body).get_json()["data"]

        assert {name: made[name] for name in body} == body

    def test_gives_a_group_and_a_key_a_role(self, api, tenant, admin):
        create_api_key(tenant)
        key, group = database.row(ApiKey), create_group(tenant)

        for target in ({"group_id": str(group.id)}, {"api_key_id": str(key.id)}):
            answer = api.post(PATH, token=admin, json={**target, "role": "viewer"})
            assert answer.status_code == 201
            assert answer.get_json()["data"].items() >= target.items()

    def test_refuses_none_or_two_targets(self, api, admin, membership):
        for target in ({}, {"membership_id": str(membership.id), "group_id": str(uuid4())}):
            assert api.post(PATH, token=admin, json={**target, "role": "viewer"}).status_code == 422

    def test_refuses_what_another_tenant_has(self, api, admin, membership):
        other = create_tenant()
        create_role(other, key="clerk")
        create_resource(other, "project", "apollo")
        create_api_key(other)
        own = {"membership_id": str(membership.id), "role": "viewer"}
        place = {"type": "project", "id": "apollo"}
        foreign = create_member(other)[1].id
        refused = {
            "membership_not_found": {"membership_id": str(foreign), "role": "viewer"},
            "group_not_found": {"group_id": str(create_group(other).id), "role": "viewer"},
            "api_key_not_found": {"api_key_id": str(database.row(ApiKey).id), "role": "viewer"},
            "role_not_found": own | {"role": "clerk"},
            "resource_not_found": own | {"resource": place},
        }

        for code, body in refused.items():
            answer = api.post(PATH, token=admin, json=body)
            assert (answer.status_code, answer.get_json()["code"]) == (404, code)
        assert api.post(f"{PATH}?tenant_id={other.id}", token=admin, json=own).status_code == 404

    def test_refuses_a_revoked_key(self, api, tenant, admin):
        create_api_key(tenant, revoked_at=utcnow())
        body = {"api_key_id": str(database.row(ApiKey).id), "role": "viewer"}

        assert api.post(PATH, token=admin, json=body).get_json()["code"] == "api_key_not_found"

    @pytest.mark.parametrize("has_resource", [False, True])
    def test_refuses_the_same_again(self, api, tenant, admin, membership, has_resource):
        create_resource(tenant, "project", "apollo")
        place = {"type": "project", "id": "apollo"} if has_resource else None
        body = {"membership_id": str(membership.id), "role": "viewer", "resource": place}
        api.post(PATH, token=admin, json=body)

        answer = api.post(PATH, token=admin, json=body)

        assert (answer.status_code, answer.get_json()["code"]) == (409, "role_assigned")

    def test_refuses_an_end_in_the_past(self, api, admin, membership):
        body = {"membership_id": str(membership.id), "role": "viewer"}

        answer = api.post(PATH, token=admin, json=body | {"expires_at": "2020-01-01T00:00:00Z"})

        assert answer.status_code == 422

    def test_nobody_gives_what_only_groups_of_others_have(self, api, tenant, admin, membership):
        create_permission("invoices:approve")
        role = create_role(tenant, "invoices:approve", key="accountant")
        other = create_member(tenant)[0]
        create_assignment(tenant, role, group_id=create_group(tenant, other).id)

        body = {"membership_id": str(membership.id), "role": "accountant"}
        answer = api.post(PATH, token=admin, json=body)

        assert (answer.status_code, answer.get_json()["code"]) == (403, "role_above_own")

    def test_nobody_gives_what_they_lack(self, api, tenant, admin, membership):
        create_permission("invoices:approve")
        create_role(tenant, "invoices:approve", key="base")
        create_role(tenant, inherits="base", key="accountant")
        create_role(tenant, assignable_by="owner", key="boss")

        for role in ("owner", "accountant", "boss"):
            body = {"membership_id": str(membership.id), "role": role}
            answer = api.post(PATH, token=admin, json=body)
            assert (answer.status_code, answer.get_json()["code"]) == (403, "role_above_own")

    def test_what_is_held_until_a_moment_is_given_no_longer(self, api, tenant):
        create_role(tenant, "roles:write", "api_keys:write", key="deputy", assignable_by="viewer")
        _, membership, token = create_member(tenant, role="viewer")
        end = utcnow() + timedelta(hours=1)
        deputy = database.row(AccessRole, key="deputy")
        create_assignment(tenant, deputy, membership_id=membership.id, expires_at=end)
        other = create_member(tenant, role="viewer")[1]
        target = {"membership_id": str(other.id), "role": "deputy"}
        key = {"name": "mine", "permissions": ["roles:write"]}
        earlier, later = (
            {"expires_at": rfc3339(end + timedelta(minutes=minutes))} for minutes in (-1, 1)
        )
        role = {"key": "mine", "name": "x", "permissions": ["roles:write"]}

        refused = [
            *(api.post(PATH, token=token, json=target | ends) for ends in ({}, later)),
            *(api.post("/v1/api-keys", token=token, json=key | ends) for ends in ({}, later)),
            api.post("/v1/roles", token=token, json={**role, "assignable_by": "viewer"}),
        ]
        given = [
            api.post(PATH, token=token, json=target | earlier),
            api.post("/v1/api-keys", token=token, json=key | earlier),
        ]

        codes = ["role_above_own"] * 2 + ["permission_beyond_own"] * 2 + ["role_above_own"]
        assert [answer.get_json()["code"] for answer in refused] == codes
        assert [answer.status_code for answer in given] == [201, 201]

    def test_a_group_gives_what_can_be_given(self, api, tenant, membership):
        create_permission("invoices:approve")
        role = create_role(tenant, "invoices:approve", key="accountant")
        user, _, token = create_member(tenant, role="admin")
        create_assignment(tenant, role, group_id=create_group(tenant, user).id)
        body = {"membership_id": str(membership.id), "role": "accountant"}

        assert api.post(PATH, token=token, json=body).status_code == 201

    def test_an_owner_of_the_whole_tenant_has_no_end(self, api, tenant, owner, membership):
        """Before the end they could make themselves an owner for good."""
        end = rfc3339(utcnow() + timedelta(hours=1))
        body = {"membership_id": str(membership.id), "role": "owner", "expires_at": end}

        answer = api.post(PATH, token=owner, json=body)

        assert answer.status_code == 422
        assert answer.get_json()["detail"][0]["loc"] == ["body", "expires_at"]

    def test_an_assigned_owner_gives_everything(self, api, tenant, membership):
        create_permission("invoices:approve")
        create_role(tenant, "invoices:approve", assignable_by="owner", key="accountant")
        _, own, token = create_member(tenant, role="admin")
        create_assignment(tenant, "owner", membership_id=own.id)
        body = {"membership_id": str(membership.id), "role": "accountant"}

        assert api.post(PATH, token=token, json=body).status_code == 201

    def test_a_key_gives_what_it_has(self, api, tenant, membership):
        create_permission("invoices:approve")
        role = create_role(tenant, "invoices:approve", key="accountant")
        token = create_api_key(tenant, ["roles:write"])
        body = {"membership_id": str(membership.id), "role": "accountant"}

        before = api.post(PATH, token=token, json=body)
        create_assignment(tenant, role, api_key_id=database.row(ApiKey).id)
        after = api.post(PATH, token=token, json=body)

        assert (before.status_code, after.status_code) == (403, 201)


class TestList:
    def test_filters(self, api, tenant, admin, membership):
        create_api_key(tenant)
        key, group = database.row(ApiKey), create_group(tenant)
        place, role = create_resource(tenant, "project", "apollo"), create_role(tenant, key="clerk")
        made = {
            f"membership_id={membership.id}": create_assignment(
                tenant, "viewer", membership_id=membership.id
            ),
            f"group_id={group.id}": create_assignment(tenant, "viewer", group_id=group.id),
            "role=clerk": create_assignment(tenant, role, api_key_id=key.id),
            "resource_type=project&resource_id=apollo": create_assignment(
                tenant, "member", api_key_id=key.id, resource=place
            ),
        }

        for token in (admin, platform_token()):
            for query, row in made.items():
                path = f"{PATH}?tenant_id={tenant.id}&{query}"
                assert [one["id"] for one in api.get(path, token=token).get_json()["data"]] == [
                    str(row.id)
                ]
            assert len(api.get(f"{PATH}?api_key_id={key.id}", token=token).get_json()["data"]) == 2
        assert api.get(f"{PATH}?role=nobody", token=admin).get_json()["data"] == []
        assert api.get(f"{PATH}?resource_type=project", token=admin).status_code == 422


class TestDelete:
    def test_only_an_owner_ends_an_owner(self, api, tenant, admin, owner, membership):
        row = create_assignment(tenant, "owner", membership_id=membership.id)

        by_admin = api.delete(f"{PATH}/{row.id}", token=admin)
        by_owner = api.delete(f"{PATH}/{row.id}", token=owner)

        assert by_admin.get_json()["code"] == "owner_only"
        assert by_owner.status_code == 204


class TestEnd:
    def test_expired_ones_are_removed(self, app, api, tenant, admin, membership):
        past, future = utcnow() - timedelta(seconds=1), utcnow() + timedelta(hours=1)
        create_assignment(tenant, "viewer", membership_id=membership.id, expires_at=past)
        kept = [
            create_assignment(tenant, "member", membership_id=membership.id, expires_at=future),
            create_assignment(tenant, "billing", membership_id=membership.id),
        ]

        with app.app_context():
            remove_ended()

        assert database.rows(RoleAssignment) == sorted(kept, key=lambda row: row.id)
        api.sequence()
        (event,) = api.get("/v1/events?types=role_assignment.*", token=admin).get_json()["data"]
        assert (event["type"], event["data"]["role"]) == ("role_assignment.expired", "viewer")

    def test_with_the_api_key(self, api, tenant, admin):
        create_api_key(tenant)
        key = database.row(ApiKey)
        create_assignment(tenant, "viewer", api_key_id=key.id)

        api.delete(f"/v1/api-keys/{key.id}", token=admin)

        assert database.rows(RoleAssignment) == []
        assert deleted(api, admin) == ["viewer"]

    def test_with_the_connection_of_the_group(self, api, tenant, owner):
        group = create_group(tenant)
        create_assignment(tenant, "viewer", group_id=group.id)

        api.delete(f"/v1/scim-connections/{group.connection_id}", token=owner)

        assert database.rows(RoleAssignment) == []
        assert deleted(api, owner) == ["viewer"]

    @pytest.mark.parametrize("target", ["api_key_id", "group_id"])
    def test_of_many_the_rest_follows(self, app, api, tenant, admin, target, monkeypatch):
        monkeypatch.setattr(role_assignments, "MAX_ENDED", 1)
        directory = Directory(app, create_connection(tenant)[1])
        group_id = directory.post("/Groups", {"displayName": "Crew"}).get_json()["id"]
        create_api_key(tenant)
        ids = {"api_key_id": database.row(ApiKey).id, "group_id": group_id}
        for role in ("billing", "member", "viewer"):
            create_assignment(tenant, role, **{target: ids[target]})
            create_assignment(tenant, role, membership_id=create_member(tenant)[1].id)

        api.delete(f"/v1/api-keys/{ids['api_key_id']}", token=admin)
        directory.delete(f"/Groups/{group_id}")
        at_once = deleted(api, admin)
        with app.app_context():
            remove_ended()

        assert len(at_once) == 1
        assert sorted(deleted(api, admin)) == ["billing", "member", "viewer"]
        assert all(row.membership_id for row in database.rows(RoleAssignment))

    def test_of_a_group_that_is_deleted_meanwhile(self, app, api, tenant, admin):
        create_assignment(tenant, "viewer", group_id=uuid4())

        with app.app_context():
            remove_ended()

        assert deleted(api, admin) == ["viewer"]


def deleted(api, token):
    """The roles of the assignments whose deletion is audited and an event."""
    api.sequence()
    path = "/v1/audit-events?action=role_assignment.deleted"
    audited = [one["before"]["role"] for one in api.get(path, token=token).get_json()["data"]]
    events = api.get("/v1/events?types=role_assignment.deleted", token=token).get_json()["data"]
    assert audited == [one["data"]["role"] for one in events]
    return audited


class TestTargetName:
    def test_is_included_for_each_kind_of_target(self, api, tenant):
        user, membership, token = create_member(tenant, "owner", first_name="Ada", last_name="")
        group = create_group(tenant, user)
        create_api_key(tenant, name="sync")
        ((key_id,),) = database.query("SELECT id FROM api_keys")
        role = create_role(tenant)
        targets = {"membership_id": membership.id, "group_id": group.id, "api_key_id": key_id}
        for name, row_id in targets.items():
            create_assignment(tenant, role, **{name: row_id})

        rows = api.get(f"{PATH}?include=target_name", token=token).get_json()["data"]

        found = {name: row["target_name"] for row in rows for name in targets if row[name]}
        assert found == {"membership_id": "Ada", "group_id": "Crew", "api_key_id": "sync"}


class TestLastOwner:
    def test_of_a_tenant_stays_also_if_it_is_assigned(self, api, tenant, membership):
        row = create_assignment(tenant, "owner", membership_id=membership.id)

        refused = api.delete(f"{PATH}/{row.id}", token=platform_token())
        other = create_assignment(tenant, "owner", membership_id=create_member(tenant)[1].id)
        done = api.delete(f"{PATH}/{row.id}", token=platform_token())
        again = api.delete(f"{PATH}/{other.id}", token=platform_token())

        codes = [answer.status_code for answer in (refused, done, again)]
        assert codes == [409, 204, 409]
        assert refused.get_json()["code"] == "last_owner"

    def test_does_not_matter_for_an_owner_by_membership_or_for_one_resource(self, api, tenant):
        member = create_member(tenant, role="owner")[1]
        place = create_resource(tenant, "folder", "1")
        for more in ({}, {"resource": place}):
            row = create_assignment(tenant, "owner", membership_id=member.id, **more)
            assert api.delete(f"{PATH}/{row.id}", token=platform_token()).status_code == 204

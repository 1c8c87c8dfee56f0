"""``include=extra_roles`` of memberships."""

from datetime import timedelta

from app.core.clock import utcnow
from tests.factories import (
    create_assignment,
    create_member,
    create_resource,
    create_role,
    create_tenant,
)
from tests.roles.test_role_assignments import create_group

PATH = "/v1/memberships/tenant?include=extra_roles"


def shown(api, token):
    found = api.get(PATH, token=token)
    assert found.status_code == 200, found.text
    return {one["id"]: one["extra_roles"] for one in found.get_json()["data"]}


class TestExtraRoles:
    def test_are_those_of_the_membership_and_of_the_users_groups(self, api, tenant, admin):
        user, membership, _ = create_member(tenant, role="member")
        role, group = create_role(tenant, key="clerk"), create_group(tenant, user)
        place = create_resource(tenant, "project", "apollo")
        create_assignment(tenant, role, membership_id=membership.id, resource=place)
        create_assignment(tenant, "viewer", group_id=group.id)

        found = shown(api, admin)

        own, of_group = found.pop(str(membership.id))
        assert set(map(len, found.values())) == {0}
        names = ("role", "resource", "group_id", "group_name", "source")
        assert [own[name] for name in names] == [
            "clerk", {"type": "project", "id": "apollo"}, None, None, "api",
        ]  # fmt: skip
        assert [of_group[name] for name in names] == [
            "viewer", None, str(group.id), "Crew", "api",
        ]  # fmt: skip

    def test_are_not_those_that_have_expired(self, api, tenant, admin):
        membership = create_member(tenant)[1]
        past = utcnow() - timedelta(seconds=1)
        create_assignment(tenant, "viewer", membership_id=membership.id, expires_at=past)

        assert shown(api, admin)[str(membership.id)] == []

    def test_need_the_permission_to_read_roles(self, api, tenant):
        token = create_member(tenant, role="member")[2]

        assert api.get(PATH, token=token).status_code == 403

    def test_of_other_tenants_are_not_shown(self, api, tenant, admin):
        other = create_tenant()
        membership = create_member(other)[1]
        create_assignment(other, "viewer", membership_id=membership.id)

        assert str(membership.id) not in shown(api, admin)

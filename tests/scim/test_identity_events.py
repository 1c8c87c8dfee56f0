"""Events of the identity provider about people whom a directory provisions."""

import pytest

from app.memberships.models import Membership
from app.users.models import User
from tests.database import row
from tests.scim.directory import create_connection


@pytest.fixture
def connection(tenant, owner):
    return create_connection(tenant, group_roles={"Finance": "billing"})


def deliver(sender, tenant, role="admin", *, is_active):
    person = {"id": "sub-1", "email": "eve@example.com", "first_name": "Eve", "active": is_active}
    link = {"organization_id": tenant.idp_org_id, "user_id": "sub-1", "role": role}
    for kind, data in (
        ("organization.updated", {"id": tenant.idp_org_id, "name": tenant.name}),
        ("user.updated", person),
        ("membership.updated", {**link, "active": is_active}),
    ):
        delivered = sender.tell(kind, **data)
        assert delivered.status == "succeeded", delivered.detail


def test_leave_the_profile_and_the_activity(sender, tenant, directory):
    made = directory.add_user("ada@example.com", externalId="sub-1", name={"givenName": "Ada"})

    deliver(sender, tenant, is_active=False)

    user, membership = row(User, id=made["id"]), row(Membership, user_id=made["id"])
    assert (user.first_name, user.email, user.is_active) == ("Ada", "ada@example.com", True)
    assert (membership.is_active, membership.role) == (True, "admin")


def test_leave_the_role_that_a_group_gives(sender, tenant, directory):
    made = directory.add_user("ada@example.com", externalId="sub-1")
    directory.add_group("Finance", made["id"])

    deliver(sender, tenant, is_active=False)

    assert row(Membership, user_id=made["id"]).role == "billing"


def test_apply_again_after_the_directory_has_deleted_the_person(sender, tenant, directory):
    made = directory.add_user("ada@example.com", externalId="sub-1")
    directory.delete(f"/Users/{made['id']}")

    deliver(sender, tenant, is_active=True)

    assert row(User, id=made["id"]).first_name == "Eve"

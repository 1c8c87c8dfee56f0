"""Two changes at the same moment end as one after the other would."""

from functools import partial
from itertools import combinations_with_replacement

import pytest

from app.memberships.models import Membership
from app.scim.models import ScimGroup, ScimMember, ScimUser
from tests.concurrency import at_once
from tests.database import row, rows
from tests.factories import create_member, create_tenant
from tests.scim.directory import (
    GROUP,
    Directory,
    add_members,
    create_connection,
    remove_member,
    replace,
)

ROLES = {"A": "admin", "B": "billing", "C": "admin", "N": "billing"}


class World:
    """A person who is in the groups A, B and E, but not in C; E gives no role."""

    def __init__(self, app, api):
        self.api = api
        self.tenant = create_tenant()
        self.owner = create_member(self.tenant, role="owner")[2]
        _, token = create_connection(self.tenant, group_roles=ROLES, default_role="viewer")
        self.directory = Directory(app, token)
        self.person = self.directory.add_user("ada@example.com")["id"]
        self.membership = str(row(Membership, user_id=self.person).id)
        self.groups = {
            name: self.directory.add_group(name, *([self.person] if name in "ABE" else []))["id"]
            for name in "ABCE"
        }

    def state(self):
        membership = row(Membership, user_id=self.person)
        record = row(ScimUser, id=self.person)
        member_of = {one.group_id for one in rows(ScimMember, user_id=self.person)}
        groups = [one for one in rows(ScimGroup, tenant_id=self.tenant.id) if one.id in member_of]
        return (
            membership.role,
            membership.is_active,
            record.has_mapped_role,
            record.deleted_at is None,
            tuple(sorted(one.display_name for one in groups)),
        )


def leave(name, world):
    operation = remove_member(world.person)
    return world.directory.patch(f"/Groups/{world.groups[name]}", operation)


def join(name, world):
    operation = add_members(world.person)
    return world.directory.patch(f"/Groups/{world.groups[name]}", operation)


def rename(name, new, world):
    return world.directory.patch(f"/Groups/{world.groups[name]}", replace("displayName", new))


def empty(name, world):
    body = {"schemas": [GROUP], "displayName": name, "members": []}
    return world.directory.put(f"/Groups/{world.groups[name]}", body)


def drop(name, world):
    return world.directory.delete(f"/Groups/{world.groups[name]}")


def make(name, world):
    body = {"schemas": [GROUP], "displayName": name, "members": [{"value": world.person}]}
    return world.directory.post("/Groups", body)


def end(world):
    return world.directory.delete(f"/Users/{world.person}")


def deactivate(world):
    return world.directory.patch(f"/Users/{world.person}", replace("active", False))


def set_role(world):
    path = f"/v1/memberships/tenant/{world.membership}/role?role=member"
    return world.api.patch(path, token=world.owner)


OPERATIONS = {
    "leave A": partial(leave, "A"),
    "empty B": partial(empty, "B"),
    "delete A": partial(drop, "A"),
    "join C": partial(join, "C"),
    "rename E": partial(rename, "E", "N"),
    "create a group": partial(make, "N"),
    "delete the person": end,
    "deactivate the person": deactivate,
    "owner sets the role": set_role,
}


@pytest.mark.parametrize(
    ("first", "second"), list(combinations_with_replacement(OPERATIONS, 2)), ids=str
)
def test_pairs_end_as_one_after_the_other(app, api, first, second):
    one, other = OPERATIONS[first], OPERATIONS[second]
    world = World(app, api)

    answers = at_once([partial(one, world), partial(other, world)])

    assert all(answer.status_code < 500 for answer in answers), answers
    assert any(
        world.state() == state_after(World(app, api), order)
        for order in ((one, other), (other, one))
    )


def state_after(world, operations):
    for operation in operations:
        operation(world)
    return world.state()


def test_a_role_is_set_after_a_group_that_was_waited_for(app, api):
    """An owner's change waits for a group's, which then gives the role."""
    world = World(app, api)
    leave("A", world)
    leave("B", world)

    answers = at_once([partial(join, "C", world), partial(set_role, world)] * 3)

    assert all(answer.status_code in (200, 409) for answer in answers)
    assert world.state()[:3] == ("admin", True, True)

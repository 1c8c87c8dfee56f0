"""A person's life as the customer's directory has it, from the first day to the return."""

import pytest

from app.memberships.models import Membership
from app.users.models import User
from tests.database import row
from tests.factories import create_limits, create_member, limit_flag, user_token
from tests.scim.directory import Directory, create_connection, replace


@pytest.fixture
def directory(app, tenant):
    create_limits("free", limit_flag("seats", 2))
    create_member(tenant, role="owner")
    roles = {"Finance": "billing", "Administrators": "admin"}
    return Directory(app, create_connection(tenant, provider="okta", group_roles=roles)[1])


def status(api, user_id, path="/v1/users"):
    """What the person's own request is answered with."""
    return api.get(path, token=user_token(row(User, id=user_id))).status_code


def role_of(user_id):
    return row(Membership, user_id=user_id).role


def test_a_person_is_assigned_moves_leaves_and_returns(api, directory):
    finance = directory.add_group("Finance")["id"]
    administrators = directory.add_group("Administrators")["id"]

    # Assigned: looked up, created, and able to sign in.
    assert directory.find('userName eq "ada@example.com"')["totalResults"] == 0
    name = {"givenName": "Ada", "familyName": "Lovelace"}
    ada = directory.add_user("ada@example.com", externalId="00u1", name=name)["id"]
    me = {"op": "add", "path": "members", "value": [{"value": ada}]}
    assert (role_of(ada), row(User, id=ada).idp_user_id) == ("member", "00u1")
    assert status(api, ada) == 200
    assert status(api, ada, "/v1/scim-connections") == 403

    # A group gives a role, which counts for the next request; another group moves the person.
    directory.patch(f"/Groups/{finance}", me)
    assert role_of(ada) == "billing"
    directory.patch(f"/Groups/{administrators}", me)
    leave = {"op": "remove", "path": f'members[value eq "{ada}"]'}
    directory.patch(f"/Groups/{finance}", leave)
    assert role_of(ada) == "admin"
    assert status(api, ada, "/v1/scim-connections") == 200

    # The seats are taken; the directory is told so, and nothing of the other person is stored.
    bob = {"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"], "userName": "bob@example.com"}
    assert directory.post("/Users", bob).status_code == 403
    assert directory.find('userName eq "bob@example.com"')["totalResults"] == 0

    # Deactivated: the next request is refused, and the seat is free.
    answer = directory.patch(f"/Users/{ada}", replace(None, {"active": False}))
    assert answer.get_json()["active"] is False
    assert status(api, ada) == 403
    assert directory.post("/Users", bob).status_code == 201

    # Bob goes for good, and Ada returns as the same user with the role of her group.
    (found,) = directory.find('userName eq "bob@example.com"')["Resources"]
    assert directory.delete(f"/Users/{found['id']}").status_code == 204
    answer = directory.patch(f"/Users/{ada}", replace("active", "True"))
    assert answer.get_json()["active"] is True
    assert (status(api, ada, "/v1/scim-connections"), role_of(ada)) == (200, "admin")

"""People whom a directory provisions cannot be changed here in what the directory says."""

import pytest

from app.memberships.models import Membership
from tests.database import row
from tests.factories import platform_token
from tests.scim.directory import create_connection


@pytest.fixture
def connection(tenant, owner):
    return create_connection(tenant, group_roles={"Finance": "billing"})


@pytest.fixture
def token(owner):
    return owner[2]


@pytest.fixture
def ada(directory):
    return directory.add_user("ada@example.com", name={"givenName": "Ada"})["id"]


def change(api, token, what, user_id):
    membership = f"/v1/memberships/tenant/{row(Membership, user_id=user_id).id}"
    match what:
        case "name":
            return api.patch(f"/v1/users/{user_id}", token=token, json={"first_name": "Eve"})
        case "same name":
            return api.patch(f"/v1/users/{user_id}", token=token, json={"first_name": "Ada"})
        case "activity":
            return api.patch(f"/v1/users/{user_id}", token=token, json={"is_active": False})
        case "membership":
            return api.patch(f"{membership}/active?is_active=false", token=token)
        case "role":
            return api.patch(f"{membership}/role?role=viewer", token=token)
        case "metadata":
            path = f"/v1/users/{user_id}/meta_data"
            return api.patch(path, token=token, json={"patches": {"color": "blue"}})


@pytest.mark.parametrize("what", ["name", "activity", "membership"])
def test_cannot_be_changed_here(api, token, ada, what):
    for credential in (token, platform_token()):
        answer = change(api, credential, what, ada)

        assert (answer.status_code, answer.get_json()["code"]) == (409, "managed_by_directory")


@pytest.mark.parametrize("what", ["same name", "role", "metadata"])
def test_can_be_changed_in_the_rest(api, token, ada, what):
    assert change(api, token, what, ada).status_code == 200


def test_have_the_role_of_their_group(api, token, ada, directory):
    group = directory.add_group("Finance", ada)
    managed = change(api, token, "role", ada)
    directory.delete(f"/Groups/{group['id']}")

    assert (managed.status_code, managed.get_json()["code"]) == (409, "managed_by_directory")
    assert change(api, token, "role", ada).status_code == 200


def test_can_be_changed_after_the_directory_has_deleted_them(api, token, ada, directory):
    directory.delete(f"/Users/{ada}")

    assert change(api, token, "name", ada).status_code == 200


def test_can_be_changed_without_the_connection(api, token, ada, connection):
    api.delete(f"/v1/scim-connections/{connection[0].id}", token=token)

    assert change(api, token, "name", ada).status_code == 200

"""Each route of the protocol with the token of another connection and of another tenant.

The routes are those of the discovery endpoints, so a new resource type is covered without being
named here.
"""

import pytest

from app.connections.models import ScimConnection
from app.connections.oauth import PATH as TOKEN_PATH
from app.scim.models import ScimGroup, ScimMember, ScimUser
from tests.database import rows
from tests.factories import create_member, create_tenant
from tests.scim.directory import ERROR, GROUP, USER, Directory, create_connection, patch_body

SECRET = "canarybird"
STORED = (ScimUser, ScimGroup, ScimMember)
BODIES = {
    "User": {"schemas": [USER], "userName": "mallory"},
    "Group": {"schemas": [GROUP], "displayName": "Mallory"},
}


@pytest.fixture
def made(directory):
    """The id of a resource of each type."""
    user = directory.add_user(
        f"{SECRET}@example.com", externalId=SECRET, emails=[{"value": f"{SECRET}@example.com"}]
    )
    group = directory.add_group(SECRET, user["id"], externalId=SECRET)
    return {"User": user["id"], "Group": group["id"]}


@pytest.fixture(params=["connection", "tenant", "access token"])
def stranger(request, app, tenant, owner):
    """A directory with another connection of the tenant, or of another tenant."""
    if request.param == "connection":
        return Directory(app, create_connection(tenant, name="Other")[1])
    other = create_tenant()
    create_member(other, role="owner")
    connection, secret = create_connection(other)
    if request.param == "tenant":
        return Directory(app, secret)
    form = {"grant_type": "client_credentials", "client_id": connection.id, "client_secret": secret}
    answer = app.test_client().post(TOKEN_PATH, data=form)
    return Directory(app, answer.get_json()["access_token"])


@pytest.fixture
def types(directory):
    """The endpoint of each resource type."""
    found = directory.get("/ResourceTypes").get_json()["Resources"]
    types = {one["name"]: one["endpoint"] for one in found}
    assert types.keys() == BODIES.keys()
    return types


def stored():
    return [rows(model) for model in STORED]


def test_ids_are_not_found(stranger, types, made):
    before = stored()
    patch = patch_body({"op": "remove", "path": "externalId"})

    for name, endpoint in types.items():
        path = f"{endpoint}/{made[name]}"
        bodies = {"PUT": BODIES[name], "PATCH": patch}
        for method, body in (dict.fromkeys(("GET", "HEAD", "DELETE")) | bodies).items():
            answer = stranger.request(method, path, body)
            assert answer.status_code == 404, (method, path)
            assert SECRET not in answer.text

    assert stored() == before


def test_bulk_operations_find_nothing(stranger, types, made):
    before = stored()
    operations = [
        {"method": "DELETE", "path": f"{endpoint}/{made[name]}"} for name, endpoint in types.items()
    ] + [
        {"method": "PUT", "path": f"{endpoint}/{made[name]}", "data": BODIES[name]}
        for name, endpoint in types.items()
    ]

    answer = stranger.bulk(*operations)

    assert [one["status"] for one in answer.get_json()["Operations"]] == ["404"] * 4
    assert stored() == before


def test_searches_find_nothing(stranger, types, made):
    filters = [
        None,
        f'id eq "{made["User"]}"',
        f'id eq "{made["Group"]}"',
        f'externalId eq "{SECRET}"',
    ]
    for_type = {
        "/Users": [f'userName sw "{SECRET}"', f'emails.value co "{SECRET}"', "active eq true"],
        "/Groups": [f'displayName eq "{SECRET}"', f'members.value eq "{made["User"]}"'],
    }
    for endpoint in ("", *types.values()):
        for scim_filter in filters + for_type.get(endpoint, []):
            body = {} if scim_filter is None else {"filter": scim_filter}
            for answer in (
                stranger.get(endpoint or "/", query_string=body),
                stranger.post(f"{endpoint}/.search", body),
            ):
                assert answer.status_code == 200, answer.text
                assert answer.get_json()["totalResults"] == 0, (endpoint, scim_filter)


def test_ids_are_no_members(stranger, made):
    group = stranger.add_group("Theirs", *made.values())

    assert "members" not in group
    assert len(rows(ScimMember)) == 1


@pytest.mark.parametrize("token", [None, "scim_wrong", "sk_key", "eyJhbGciOiJub25lIn0.e30."])
def test_nothing_of_a_connection_is_shown_before_authentication(app, made, token):
    for path in ("/Users", f"/Users/{made['User']}", "/Groups", "/Schemas", "/nowhere"):
        answer = Directory(app, token).get(path)

        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert answer.get_json()["schemas"] == [ERROR]
        assert SECRET not in answer.text


def test_the_tenant_is_the_tokens_whatever_the_request_says(stranger, tenant, made):
    answer = stranger.get(
        "/Users", query_string={"tenant_id": str(tenant.id)}, headers={"X-Tenant-Id": tenant.slug}
    )

    assert answer.get_json()["totalResults"] == 0
    assert len(rows(ScimConnection)) == 2

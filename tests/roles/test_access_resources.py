"""/v1/resources."""

import pytest

from app.roles import access_resources
from tests.factories import (
    create_assignment,
    create_member,
    create_resource,
    create_role,
    create_tenant,
    platform_token,
)

PATH = "/v1/resources"


def chain(tenant, prefix, length):
    """Resources below one another, the highest first."""
    found = []
    for number in range(length):
        parent = found[-1] if found else None
        found.append(create_resource(tenant, prefix, str(number), parent=parent))
    return found


def place(row):
    return {"type": row.type, "id": row.id}


class TestPut:
    def test_registers_and_replaces(self, api, tenant, admin):
        create_resource(tenant, "folder", "space")
        body = {"parent": {"type": "folder", "id": "space"}, "attributes": {"status": "open"}}

        first = api.put(f"{PATH}/project/apollo", token=admin, json=body)
        second = api.put(f"{PATH}/project/apollo", token=admin)
        read = api.get(f"{PATH}/project/apollo", token=admin)

        assert (first.status_code, first.headers["ETag"]) == (200, '"1"')
        assert first.get_json()["data"].items() >= body.items()
        assert first.get_json()["data"]["tenant_id"] == str(tenant.id)
        assert second.get_json()["data"].items() >= {"parent": None, "attributes": {}}.items()
        assert (read.get_json(), read.headers["ETag"]) == (second.get_json(), '"2"')

    def test_the_same_again_changes_nothing(self, api, admin):
        body = {"attributes": {"status": "open", "a": {"second": 1.0, "x": [True, None]}}}

        answers = [api.put(f"{PATH}/project/apollo", token=admin, json=body) for _ in range(2)]

        assert [answer.headers["ETag"] for answer in answers] == ['"1"', '"1"']

    def test_needs_the_version_that_was_read(self, api, admin):
        path = f"{PATH}/project/apollo"

        missing = api.put(path, token=admin, json={}, headers={"If-Match": '"1"'})
        api.put(path, token=admin, json={})
        current = api.put(
            path, token=admin, json={"attributes": {"a": 1}}, headers={"If-Match": '"1"'}
        )
        stale = api.delete(path, token=admin, headers={"If-Match": '"1"'})

        codes = [answer.status_code for answer in (missing, current, stale)]
        assert codes == [412, 200, 412]

    @pytest.mark.parametrize(
        "path",
        [
            "1project/apollo",
            f"{'p' * 65}/apollo",
            f"project/{'x' * 256}",
            "project/a%0Ab",
            "pröject/a",
        ],
    )
    def test_refuses_other_names(self, api, admin, path):
        answer = api.put(f"{PATH}/{path}", token=admin, json={})

        assert answer.status_code == 422
        assert answer.get_json()["detail"][0]["loc"][0] == "path"

    @pytest.mark.parametrize("name", ["a b", "ü/ü", "日本", "a%2Fb", "..", "x" * 255])
    def test_takes_other_alphabets(self, api, admin, name):
        from urllib.parse import quote

        path = f"{PATH}/project/{quote(name, safe='')}"
        answer = api.put(path, token=admin, json={})

        if "/" in name:  # part of the path's form
            assert answer.status_code == 404
        else:
            assert answer.get_json()["data"]["id"] == name

    def test_refuses_an_unknown_parent_and_anothers(self, api, admin):
        foreign = create_resource(create_tenant(), "folder", "space")

        answer = api.put(f"{PATH}/project/apollo", token=admin, json={"parent": place(foreign)})

        assert (answer.status_code, answer.get_json()["code"]) == (404, "parent_not_found")

    @pytest.mark.parametrize("known", [False, True])
    def test_nobody_gains_by_the_place_of_a_resource(self, api, tenant, owner, known):
        _, membership, token = create_member(tenant, role="admin")
        role = create_role(tenant, "docs:read")
        mine, yours = (create_resource(tenant, "folder", name) for name in ("mine", "yours"))
        for folder in (mine, create_resource(tenant, "folder", "too")):
            create_assignment(tenant, role, membership_id=membership.id, resource=folder)
        create_resource(tenant, "doc", "own", parent=mine)
        if known:
            create_resource(tenant, "doc", "1", parent=yours)

        def put(name, folder, token=token):
            body = {"parent": {"type": "folder", "id": folder}}
            return api.put(f"{PATH}/doc/{name}", token=token, json=body)

        assert put("1", "mine").get_json()["code"] == "role_above_own"
        assert [put(*place).status_code for place in (("1", "yours"), ("own", "too"))] == [200, 200]
        assert put("1", "mine", owner).status_code == 200

    def test_refuses_a_cycle(self, api, tenant, admin):
        first, *_, last = chain(tenant, "folder", 3)

        for parent in (first, last):
            answer = api.put(f"{PATH}/folder/0", token=admin, json={"parent": place(parent)})
            assert (answer.status_code, answer.get_json()["code"]) == (409, "resource_cycle")

    def test_at_most_8_are_below_one_another(self, api, tenant, admin):
        highest = chain(tenant, "upper", 6)
        chain(tenant, "lower", 3)
        eighth = chain(tenant, "full", 8)[-1]

        ninth = api.put(f"{PATH}/x/9", token=admin, json={"parent": place(eighth)})
        moved = api.put(f"{PATH}/lower/0", token=admin, json={"parent": place(highest[5])})
        fits = api.put(f"{PATH}/lower/0", token=admin, json={"parent": place(highest[4])})

        codes = [answer.get_json().get("code") for answer in (ninth, moved, fits)]
        assert codes == ["resource_too_deep", "resource_too_deep", None]

    def test_does_not_move_very_many(self, api, tenant, admin, monkeypatch):
        monkeypatch.setattr(access_resources, "MAX_MOVED", 1)
        top = create_resource(tenant, "folder", "top")
        for name in ("1", "2"):
            create_resource(tenant, "folder", name, parent=top)
        create_resource(tenant, "folder", "new")

        answer = api.put(
            f"{PATH}/folder/top", token=admin, json={"parent": {"type": "folder", "id": "new"}}
        )

        assert answer.get_json()["code"] == "too_many_below"

    def test_refuses_large_attributes(self, api, admin):
        answer = api.put(
            f"{PATH}/project/apollo", token=admin, json={"attributes": {"a": "x" * 16_384}}
        )

        assert answer.status_code == 422

    def test_the_platform_names_the_tenant(self, api, tenant):
        without = api.put(f"{PATH}/project/apollo", token=platform_token(), json={})
        with_it = api.put(
            f"{PATH}/project/apollo?tenant_id={tenant.id}", token=platform_token(), json={}
        )

        assert (without.status_code, with_it.status_code) == (422, 200)


class TestList:
    def test_pages_have_each_once_by_type_and_id(self, api, tenant, admin):
        wanted = [("a", "ü"), ("b", "1"), ("b", "2"), ("b", "x" * 255), ("c", "1")]
        for one in wanted:
            create_resource(tenant, *one)
        found, cursor = [], ""
        while cursor is not None:
            page = api.get(f"{PATH}?limit=2{cursor}", token=admin).get_json()
            found += [(one["type"], one["id"]) for one in page["data"]]
            cursor = page["next_cursor"] and f"&cursor={page['next_cursor']}"

        assert found == wanted
        of_type = api.get(f"{PATH}?type=b", token=admin).get_json()
        assert ([one["id"] for one in of_type["data"]], of_type["next_cursor"]) == (
            ["1", "2", "x" * 255],
            None,
        )

    @pytest.mark.parametrize("cursor", ["x", "é", "W10=", "WyJhIiwgMV0=", "bnVsbA=="])
    def test_refuses_other_cursors(self, api, admin, cursor):
        answer = api.get(PATH, token=admin, query_string={"cursor": cursor})

        assert answer.get_json()["detail"][0]["loc"] == ["query", "cursor"]


class TestDelete:
    def test_refuses_one_with_others_below_or_assignments(self, api, tenant, admin):
        chain(tenant, "folder", 2)
        row = create_resource(tenant, "project", "apollo")
        create_assignment(tenant, "viewer", membership_id=create_member(tenant)[1].id, resource=row)

        for path in ("folder/0", "project/apollo"):
            answer = api.delete(f"{PATH}/{path}", token=admin)
            assert (answer.status_code, answer.get_json()["code"]) == (409, "resource_in_use")

"""Nothing that a client sends is a 500, and each refusal has SCIM's body."""

from itertools import cycle, product

from tests.scim.directory import ENTERPRISE, ERROR, GROUP, PATCH_OP, USER

VALUES = [
    None, True, 0, -1, 10**400, 1.5, "", "a\0", "\ud800", "a" * 100_000, [], {}, [[]], [None],
    {"value": {}}, [{"value": []}], {"a": {"b": {"c": 1}}},
]  # fmt: skip
NAMES = "schemas id externalId userName name active emails phoneNumbers groups roles meta"
ATTRIBUTES = [
    *NAMES.split(),
    *["password", "members", "displayName", ENTERPRISE, "", "\0", "a.b.c"],
]
PATHS = [
    "", " ", "\0", "userName", "name.givenName", "id", "meta.version", "schemas", "roles",
    "emails[", "emails[type eq", 'emails[type eq "work"]', 'emails[type eq "work"].value.x',
    'members[value eq "x"].display', 'emails[not (not (not (value eq "a")))]', "urn:a:b:c",
    f"{ENTERPRISE}:manager.value", "a" * 10_000, "(" * 2_000,
]  # fmt: skip


def check(answer):
    assert answer.status_code < 500 or answer.status_code == 501, answer.text[:300]
    if answer.status_code >= 400:
        assert answer.get_json()["schemas"] == [ERROR]
        assert "validation error" not in answer.text


def test_in_attributes(directory):
    """Each value in each attribute, by one of the ways to send it."""
    path = f"/Users/{directory.add_user('ada')['id']}"
    group = f"/Groups/{directory.add_group('G')['id']}"
    person, named = {"schemas": [USER], "userName": "bob"}, {"schemas": [GROUP], "displayName": "H"}
    ways = cycle(
        [
            lambda values: directory.post("/Users", person | values),
            lambda values: directory.put(path, person | values),
            lambda values: directory.put(group, named | values),
            lambda values: directory.patch(path, {"op": "replace", "value": values}),
            lambda values: directory.post("/Groups", named | values),
        ]
    )

    for attribute, value in product(ATTRIBUTES, VALUES):
        check(next(ways)({attribute: value}))


def test_in_sub_attributes_of_the_schemas(directory):
    path = f"/Users/{directory.add_user('ada')['id']}"
    schemas = directory.get("/Schemas").get_json()["Resources"]
    attributes = next(one["attributes"] for one in schemas if one["id"] == USER)
    ops = cycle(("add", "replace", "add"))

    for attribute in attributes:
        for sub in attribute.get("subAttributes", ()):
            for value in (5, "a", {}, [1]):
                entry = {sub["name"]: value}
                sent = [entry] if attribute["multiValued"] else entry
                operation = {"op": next(ops), "path": attribute["name"], "value": sent}
                check(directory.patch(path, operation))


def test_in_paths(directory):
    made = directory.add_user("ada", emails=[{"value": "a@b.co", "type": "work"}])
    group = directory.add_group("G", made["id"])
    resources = cycle([f"/Users/{made['id']}", f"/Groups/{group['id']}"])
    ops = ("add", "replace", "remove", "copy", 5, None)
    values = ("x", None, {"value": "x"}, [{"value": "x"}], 10**30)

    for path, value, op in product(PATHS, values, ops):
        check(directory.patch(next(resources), {"op": op, "path": path, "value": value}))
        if op is None:
            next(resources)  # so that each operation is on users and on groups


def test_in_queries(directory):
    directory.add_user("ada")

    for name in ("filter", "startIndex", "count", "cursor", "attributes", "excludedAttributes"):
        for value in ("", "-1", "0", "x", "9" * 400, "\0", "é", "userName", "(" * 1000, "%00"):
            check(directory.get("/Users", query_string={name: value}))
            check(directory.get("/Groups", query_string={name: value}))


def test_in_bulk_and_patch_bodies(directory):
    for body in (
        {},
        [],
        {"schemas": []},
        {"schemas": [PATCH_OP], "Operations": None},
        {"schemas": [PATCH_OP], "Operations": [None]},
        {"schemas": [PATCH_OP], "Operations": [{"op": "add"}] * 3},
        {"Operations": [{"method": "POST", "path": "/Users", "data": {"userName": "a\0"}}]},
        {"Operations": [{"method": "POST", "path": "Users", "bulkId": 5, "data": 5}]},
        {"Operations": [{"method": "GET", "path": "/Users"}]},
        {"Operations": [{"method": "DELETE", "path": "/Users/bulkId:x"}], "failOnErrors": -1},
    ):
        check(directory.post("/Bulk", body))
        check(directory.request("PATCH", "/Users/00000000-0000-0000-0000-000000000000", body))
        check(directory.post("/Users/.search", body))

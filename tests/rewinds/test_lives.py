"""Random lives of three tenants, one of which is rewound: it is what it was, the others as before."""

import json

import pytest

from tests.history.test_reading import Life

# What goes back, of each list, and whether a row created since is gone or only inactive.
LISTS = {
    "/v1/users": ("email", "first_name", "is_active", "idp_user_id", "meta_data"),
    "/v1/memberships/tenant": ("user_id", "role", "is_active"),
    "/v1/custom-fields": ("entity_type", "field_key", "label", "is_active", "created_at"),
    "/v1/resources": ("parent", "attributes", "created_at"),
    "/v1/roles": ("key", "name", "permissions", "inherits", "tenant_id"),
    "/v1/billing/flags/overrides": ("flag_key", "flag_value", "created_at"),
}
# The tenant's suspension, and the only owner: there was none then.
LEFT = {"stays", "last_owner"}
STAYING = ("/v1/users", "/v1/memberships/tenant")


def state_of(life, tenant_id):
    found = {}
    for path, fields in LISTS.items():
        query = {"is_template": False} if path == "/v1/roles" else {}
        rows = life.call("GET", path, tenant_id=tenant_id, limit=100, **query)
        found[path] = {row["id"]: [json.dumps(row[name]) for name in fields] for row in rows}
    return {**found, "name": life.call("GET", f"/v1/tenants/{tenant_id}")["name"]}


def codes_of(rewind):
    return {entry["code"] for entry in rewind["left_out"]}


def check_is(now, then, done):
    """Of rows that there were not, those that cannot be deleted are inactive."""
    assert now["name"] == then["name"]
    for path, fields in LISTS.items():
        left = {entry["id"] for entry in done["left_out"]}
        now_, then_ = (
            {i: r for i, r in each[path].items() if i not in left} for each in (now, then)
        )
        added = {id_: row for id_, row in now_.items() if id_ not in then_}
        assert {id_: row for id_, row in now_.items() if id_ not in added} == then_
        if path in STAYING:
            assert "true" not in (row[fields.index("is_active")] for row in added.values())
        else:
            assert added == {}


@pytest.mark.parametrize("seed", range(6))
def test_the_tenant_is_what_it_was(api, position, go_back, seed):
    life = Life(api, seed)
    tenants = [one["id"] for one in life.tenants]
    seen = []
    for _ in range(4):
        for _ in range(12):
            life.change()
        seen.append((position(), state_of(life, tenants[0])))
    others = [state_of(life, tenant) for tenant in tenants[1:]]

    for to, then in seen[2::-1]:
        before = state_of(life, tenants[0])
        done = go_back(tenants[0], to)
        assert (done["state"], codes_of(done) - LEFT) == ("completed", set())
        check_is(state_of(life, tenants[0]), then, done)
        preview = life.call("POST", f"/v1/tenants/{tenants[0]}/rewind", {"to": to})
        assert preview["counts"] == {} or done["left_out"]

        back = go_back(tenants[0], done["position"])  # a rewind is taken back by a rewind
        assert codes_of(back) - LEFT == set()
        check_is(state_of(life, tenants[0]), before, back)

    assert [state_of(life, tenant) for tenant in tenants[1:]] == others
    now = position()
    assert life.read(as_of=now) == life.read()

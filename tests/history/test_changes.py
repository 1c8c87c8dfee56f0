"""``GET /v1/tenants/{id}/changes``: what differs between two moments."""

import pytest

from app.core.clock import utcnow
from app.history import differences
from app.rewinds.kinds import KINDS
from tests import database
from tests.factories import create_tenant, create_user, platform_token
from tests.history import exports
from tests.history.life import Life


@pytest.fixture
def position(api):
    def read():
        api.sequence()
        return api.get("/v1/events?limit=1000", token=platform_token()).get_json()["next_cursor"]

    return read


def path_of(tenant):
    return f"/v1/tenants/{tenant.id}/changes"


def test_each_row_is_there_once_with_what_differs(api, tenant, owner, position):
    user, same = create_user(tenant, first_name="Ada"), create_user(tenant)
    api.patch(f"/v1/users/{user.id}", token=owner, json={"last_name": "Before"})
    start = position()
    for names in ({"first_name": "A"}, {"first_name": "Grace"}, {"last_name": "Hopper"}):
        assert api.patch(f"/v1/users/{user.id}", token=owner, json=names).status_code == 200
    for name in ("x", same.first_name):
        api.patch(f"/v1/users/{same.id}", token=owner, json={"first_name": name})
    end = position()
    api.patch(f"/v1/users/{user.id}", token=owner, json={"last_name": "After"})
    position()

    query = {"from": start, "to": end}
    answer = api.get(path_of(tenant), token=platform_token(), query_string=query)

    first, second = answer.get_json()["data"]
    assert (first["target_type"], first["target_id"]) == ("user", str(user.id))
    assert first["changes"] == {
        "first_name": {"before": "Ada", "after": "Grace"},
        "last_name": {"before": "Before", "after": "Hopper"},
    }
    assert first["actions"] == ["user.updated"]
    assert len(first["actors"]) == 1
    assert (second["target_id"], second["changes"]) == (str(same.id), {})


def test_names_rows_and_who_changed_them_last(api, tenant, owner, position):
    user = create_user(tenant, first_name="Grace", last_name="Hopper")
    start = utcnow().isoformat()
    for token, name in ((owner, "A"), (platform_token(), "B"), (owner, "Grace")):
        api.patch(f"/v1/users/{user.id}", token=token, json={"first_name": name})
    position()

    query = {"from": start, "include": "target_name,actor_name"}
    answer = api.get(path_of(tenant), token=platform_token(), query_string=query)
    assert answer.status_code == 200, answer.text
    (row,) = answer.get_json()["data"]

    ((address,),) = database.query("SELECT email FROM users WHERE id = :id", id=row["actors"][0])
    assert (row["target_name"], row["actor_name"]) == ("Grace Hopper", address)
    assert len(row["actors"]) == 2


def test_what_is_only_said_about_a_row_is_no_field_of_it(api, tenant, owner):
    user = create_user(tenant, first_name="Ada")
    start = utcnow().isoformat()
    api.patch(f"/v1/users/{user.id}", token=owner, json={"first_name": "Augusta"})
    assert api.post(f"/v1/users/{user.id}/export", token=owner).status_code == 200
    api.sequence()

    answer = api.get(path_of(tenant), token=platform_token(), query_string={"from": start})

    (row,) = answer.get_json()["data"]
    assert row["actions"] == ["user.exported", "user.updated"]
    assert row["changes"] == {"first_name": {"before": "Ada", "after": "Augusta"}}


def test_has_resources_by_their_type_and_id(api, tenant, owner):
    start = utcnow().isoformat()
    path = "/v1/resources/doc/a"
    assert api.put(path, token=owner, json={"attributes": {"x": 1}}).status_code == 200
    api.put(path, token=owner, json={"attributes": {"x": 2}})
    api.sequence()

    answer = api.get(path_of(tenant), token=owner, query_string={"from": start})

    (found,) = answer.get_json()["data"]
    assert (found["target_type"], found["target_id"]) == ("resource", "doc/a")
    assert found["changes"]["attributes"] == {"before": None, "after": {"x": 2}}


def test_agrees_with_the_reads_at_both_moments(api):
    life = Life(api, 3)
    api.sequence()
    marks = []
    for _ in range(4):
        for _ in range(8):
            life.change()
        api.sequence()
        found = api.get("/v1/events?limit=1000", token=life.token).get_json()["next_cursor"]
        marks.append((found, {one["id"]: exports.read(one["id"]) for one in life.tenants}))

    for tenant in life.tenants:
        (start, before), (end, after) = marks[0], marks[-1]
        sent = {"from": start, "to": end}
        path = f"/v1/tenants/{tenant['id']}/changes"
        rows = api.get(path, token=life.token, query_string=sent).get_json()["data"]
        changed = {row["target_id"] for row in rows}
        for kind in KINDS:
            old, new = (exports.by_id(kind, each[tenant["id"]]) for each in (before, after))
            assert {one for one in old | new if old.get(one) != new.get(one)} <= changed


class TestBounds:
    def test_too_many_changes_are_refused(self, api, tenant, owner, position, monkeypatch):
        create = {"idp_user_id": "x", "email": "x@example.com"}
        start = utcnow().isoformat()
        assert api.post("/v1/users", token=owner, json=create).status_code == 201
        position()
        monkeypatch.setattr(differences, "MAX_CHANGES", 0)

        answer = api.get(path_of(tenant), token=platform_token(), query_string={"from": start})

        assert (answer.status_code, answer.get_json()["code"]) == (409, "too_many_changes")

    @pytest.mark.parametrize(
        "query", ["", "?from=x", "?from=2999-01-01T00:00:00Z", "?from=2026-01-01T00:00:00Z&to=y"]
    )
    def test_refuses(self, api, tenant, owner, query):
        assert api.get(path_of(tenant) + query, token=owner).status_code == 422

    @pytest.mark.parametrize("early", ["0", "2026-01-01T00:00:00Z"])
    def test_a_moment_before_the_tenant_is_not_found(self, api, tenant, early):
        answer = api.get(f"{path_of(tenant)}?from={early}", token=platform_token())

        assert (answer.status_code, answer.get_json()["code"]) == (404, "tenant_not_found")

    def test_another_tenant_is_unknown(self, api, owner):
        other = create_tenant()
        early = "2026-01-01T00:00:00Z"

        assert api.get(f"{path_of(other)}?from={early}", token=owner).status_code == 404


def test_refuses_a_second_moment_before_the_first(api, tenant, owner, position):
    user = create_user(tenant)
    api.patch(f"/v1/users/{user.id}", token=owner, json={"first_name": "A"})
    for first, second in ((position(), "0"), (utcnow().isoformat(), "2026-01-01T00:00:00Z")):
        query = {"from": first, "to": second}
        answer = api.get(path_of(tenant), token=platform_token(), query_string=query)

        assert answer.status_code == 422
        (entry,) = answer.get_json()["detail"]
        assert entry["loc"] == ["query", "to"]
        assert entry["msg"] == "Value error, must not be before `from`"

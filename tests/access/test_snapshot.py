"""GET /v1/access/snapshot."""

from random import Random

import pytest

from app.access import snapshot
from app.auth.permissions import Permission
from tests import database
from tests.access.model import Assignment, Flag, Person, Resource, Role
from tests.access.stored import store, store_permissions
from tests.access.worlds import random_world
from tests.database import execute
from tests.factories import (
    create_api_key,
    create_member,
    create_tenant,
    create_user,
    platform_token,
)
from tests.messages import sent_messages

URL = "/v1/access/snapshot"


@pytest.fixture
def world(app):
    """One owner, one member in a group, a role of theirs on a folder, and a flag with a rule."""
    world = random_world(Random(1), 1)
    world.is_active = True
    world.people = [
        Person("idp-1", "ada@a.example", role="owner", meta_data={"desk": 7, "secret": "x"}),
        Person("idp-2", "bob@a.example", role="member"),
    ]
    world.keys, world.groups = [], [{1}]
    world.roles = {
        "reader": Role("reader", ["doc:read"]),
        "writer": Role("writer", ["doc:close"], "reader"),
    }
    world.resources = {
        ("folder", "f"): Resource(None, {"state": "open", "more": [1]}),
        ("doc", "d"): Resource(("folder", "f"), {}),
    }
    world.assignments = [Assignment("group", 0, "writer", ("folder", "f"))]
    when = {
        "all": [
            {"attribute": "context.resource_state", "op": "eq", "value": "open"},
            {"attribute": "user.meta_data.desk", "op": "eq", "value": 7},
        ]
    }
    world.flags = {"sharing": Flag(True), "closing": Flag(False, when)}
    return world


@pytest.fixture
def tenant(world):
    store_permissions()
    return store(world, 1, Random(1))


@pytest.fixture
def key(tenant):
    return create_api_key(tenant, [Permission.ACCESS_READ])


@pytest.fixture
def read(api, key):
    def read(**options):
        return api.get(URL, token=key, **options)

    return read


class TestDocument:
    def test_has_all_that_decisions_need_and_no_more(self, read, tenant, world):
        found = read().json["data"]

        assert found["tenant"]["id"] == str(tenant.id)
        assert found["roles"]["writer"] == ["doc:close", "doc:read"]
        assert "doc:share" in found["roles"]["owner"]
        assert "users:write" in found["roles"]["admin"]
        assert found["permissions"]["doc:share"]["requires_flag"] == "sharing"
        assert found["limits"].keys() == {"reports", "mails", "unknown"}
        assert found["flags"]["sharing"] == {"value": True, "rules": []}
        ada, bob = sorted(found["users"], key=lambda user: user["email"])
        assert ada["meta_data"] == {"desk": 7}
        assert bob["groups"] == [found["assignments"][0]["group_id"]]
        folder = next(one for one in found["resources"] if one["type"] == "folder")
        assert folder["attributes"] == {"state": "open"}

    def test_names_its_stream(self, read, tenant):
        assert read().json["data"]["stream"] == f"/v1/access/events?tenant_id={tenant.id}"

    def test_takes_few_round_trips(self, api, key, read):
        etag = read().headers["ETag"]

        with sent_messages() as complete:
            read()
        with sent_messages() as unchanged:
            read(headers={"If-None-Match": etag})

        assert len(complete) <= 6
        assert len(unchanged) <= 3


class TestEtag:
    def test_is_that_of_an_equal_snapshot(self, read):
        etag = read().headers["ETag"]

        assert read(headers={"If-None-Match": etag}).status_code == 304

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE tenants SET is_active = false",
            "UPDATE product_permissions SET version = version + 1, requires_flag = NULL",
            "UPDATE roles SET version = version + 1 WHERE key = 'writer'",
            "UPDATE scim_groups SET version = version + 1",
            "UPDATE feature_overrides SET version = version + 1",
            "UPDATE plan_presets SET version = version + 1",
            "UPDATE usage_counters SET used = 10000",
        ],
    )
    def test_changes_with_what_decides(self, read, tenant, change):
        execute(
            "INSERT INTO feature_overrides (tenant_id, id, created_at, updated_at, version,"
            " plan_preset_id, flag_key, flag_value) SELECT :id, gen_random_uuid(), now(), now(), 1,"
            " id, 'sharing', 'true' FROM plan_presets",
            id=tenant.id,
        )
        execute(
            "INSERT INTO usage_counters (tenant_id, feature, period_start, used, announced)"
            " VALUES (:id, 'mails', 'epoch', 0, 0)"
            " ON CONFLICT (tenant_id, feature, period_start) DO UPDATE SET used = 0",
            id=tenant.id,
        )
        etag = read().headers["ETag"]

        execute(change)

        assert read(headers={"If-None-Match": etag}).status_code != 304

    def test_changes_with_a_request_at_once(self, api, read, tenant):
        user, *_ = create_member(tenant)
        etag = read().headers["ETag"]

        path = f"/v1/users/{user.id}"
        answer = api.patch(path, token=platform_token(), json={"is_active": False})

        assert answer.status_code == 200, answer.json
        assert read(headers={"If-None-Match": etag}).status_code == 200

    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [
            ("put", "/v1/permissions/doc:read", {"description": "Read.", "group": "Documents"}),
            ("put", "/v1/resources/doc/new?tenant_id={tenant}", {"attributes": {}}),
            ("patch", "/v1/roles/{role}", {"permissions": ["doc:write"]}),
            ("delete", "/v1/role-assignments/{assignment}", None),
        ],
    )
    def test_changes_with_roles_and_what_they_are_about(
        self, api, read, tenant, method, path, body
    ):
        etag, names = read().headers["ETag"], {"tenant": tenant.id}
        names["assignment"] = database.query("SELECT id FROM role_assignments")[0].id
        names["role"] = database.query("SELECT id FROM roles WHERE key = 'reader'")[0].id

        answer = getattr(api, method)(path.format(**names), token=platform_token(), json=body)

        assert answer.status_code < 300, answer.json
        assert read(headers={"If-None-Match": etag}).status_code == 200

    def test_stays_where_other_tenants_change(self, api, read):
        etag = read().headers["ETag"]

        other = create_tenant()
        create_user(other)

        assert read(headers={"If-None-Match": etag}).status_code == 304


class TestRefusals:
    def test_of_a_platform_credential_without_a_tenant(self, api, tenant):
        assert api.get(URL, token=platform_token()).status_code == 422
        assert api.get(f"{URL}?tenant_id={tenant.id}", token=platform_token()).status_code == 200

    def test_of_a_tenant_with_too_many_rows(self, read, monkeypatch):
        monkeypatch.setattr(snapshot, "MAX_ROWS", 5)

        answer = read()

        assert (answer.status_code, answer.json["code"]) == (409, "access_snapshot_too_large")

    def test_of_a_tenant_with_too_much_that_rules_compare(self, read, tenant, monkeypatch):
        monkeypatch.setattr(snapshot, "MAX_ROWS", 1000)
        database.execute(
            "UPDATE access_resources SET attributes = jsonb_build_object('state', repeat('x', :n))",
            n=100 * snapshot.MAX_ROWS * 10,
        )

        assert read().status_code == 409

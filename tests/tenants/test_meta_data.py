"""/v1/tenants/{tenant_id}/meta_data."""

from functools import partial

import pytest

from tests.concurrency import at_once
from tests.custom_fields.fields import build_index, create_field, index_rows, run_jobs, wrong_rows
from tests.factories import create_tenant, platform_token


@pytest.fixture
def tenant(app):
    return create_tenant(meta_data={"segment": "smb", "deep": {"a": 1}})


@pytest.fixture
def path(tenant):
    return f"/v1/tenants/{tenant.id}/meta_data"


@pytest.fixture
def patch(api, admin, path):
    def send(patches, **options):
        return api.patch(path, token=admin, json={"patches": patches}, **options)

    return send


class TestGetMetaData:
    def test_is_empty_at_first_and_no_part_of_the_tenant(self, api):
        tenant = create_tenant()
        token = platform_token()

        shown = api.get(f"/v1/tenants/{tenant.id}/meta_data", token=token).get_json()["data"]

        assert shown["meta_data"] == {}
        assert "meta_data" not in api.get(f"/v1/tenants/{tenant.id}", token=token).json["data"]


class TestPatchMetaData:
    def test_is_checked_by_the_tenants_own_fields(self, tenant, patch):
        create_field(tenant, entity_type="tenant", field_key="size", field_type="integer")
        create_field(tenant, entity_type="tenant", field_key="segment", is_required=True)
        create_field(tenant, entity_type="user", field_key="note", field_type="date")
        create_field(create_tenant(), entity_type="tenant", field_key="note", field_type="date")

        wrong = patch({"size": "x", "segment": None, "note": "free"})
        right = patch({"size": 5, "note": "free"})

        assert [(one["loc"], one["type"]) for one in wrong.get_json()["detail"]] == [
            (["body", "patches", "size"], "int_type"),
            (["body", "patches", "segment"], "missing"),
        ]
        assert right.status_code == 200


class TestSearchIndex:
    def test_is_built_kept_current_and_removed(self, app, api, tenant, admin, patch):
        field = create_field(tenant, entity_type="tenant", field_key="segment", is_searchable=True)
        state = f"/v1/custom-fields/{field.id}/index"

        run_jobs(app)
        built, shown = index_rows(field), api.get(state, token=admin).get_json()["data"]
        patch({"segment": "large"})
        patched = index_rows(field)
        patch({"segment": None})
        removed = index_rows(field)

        assert [row[:3] for row in built] == [(tenant.id, 0, "smb")]
        assert (shown["state"], shown["done"], shown["total"]) == ("ready", 1, 1)
        assert [row[2] for row in patched] == ["large"]
        assert removed == []

    def test_misses_no_patch_while_it_is_turned_on_and_off(self, app, api, tenant, admin, patch):
        field = create_field(tenant, entity_type="tenant", field_key="key")

        def toggle():
            for searchable in (True, False, True):
                api.patch(
                    f"/v1/custom-fields/{field.id}", token=admin, json={"is_searchable": searchable}
                )
                build_index(app, field)

        def write(worker):
            for number in range(10):
                assert patch({"key": f"{worker} {number}"}).status_code == 200

        at_once([toggle, partial(write, 1), partial(write, 2)])

        build_index(app, field)
        assert wrong_rows(field) == set()


class TestCreateTenant:
    def test_takes_metadata_within_its_limit(self, api):
        token = platform_token()
        body = {"idp_org_id": "o", "name": "Acme", "meta_data": {"segment": "smb"}}

        over = api.post("/v1/tenants", token=token, json={**body, "meta_data": {"a": "x" * 32_768}})
        created = api.post("/v1/tenants", token=token, json=body).get_json()["data"]

        shown = api.get(f"/v1/tenants/{created['id']}/meta_data", token=token)
        (fault,) = over.get_json()["detail"]
        assert (over.status_code, fault["loc"]) == (422, ["body", "meta_data"])
        assert "meta_data" not in created
        assert shown.get_json()["data"]["meta_data"] == {"segment": "smb"}

    def test_does_not_change_it_with_the_other_fields(self, api, tenant, admin):
        answer = api.patch(f"/v1/tenants/{tenant.id}", token=admin, json={"meta_data": {}})

        assert answer.get_json()["detail"][0]["type"] == "extra_forbidden"

"""Refusals come in one order, also where they need the row: 422, 404, 403, 422 of the row, 409, 412."""

from uuid import uuid4

import pytest

from tests.factories import create_member, create_preset, create_tenant, platform_token

STALE = {"If-Match": '"99"'}


@pytest.fixture
def owner(app):
    return create_member(create_tenant(), role="owner")[2]


class TestStaleVersion:
    def test_comes_after_options_that_do_not_fit_the_field(self, api, owner):
        body = {"entity_type": "user", "field_key": "k", "label": "K", "field_type": "text"}
        field = api.post("/v1/custom-fields", token=owner, json=body).get_json()["data"]

        path = f"/v1/custom-fields/{field['id']}"
        answer = api.patch(path, token=owner, json={"options": ["a"]}, headers=STALE)

        assert answer.status_code == 422

    def test_comes_after_another_presets_id(self, api, app):
        path = f"/v1/billing/plans/{create_preset().id}"

        answer = api.patch(path, token=platform_token(), json={"id": str(uuid4())}, headers=STALE)

        assert answer.status_code == 422


class TestExpiryInThePast:
    BODY = {"name": "n", "permissions": ["webhooks:read"], "expires_at": "2020-01-01T00:00:00Z"}

    def test_comes_before_a_tenant_that_does_not_exist(self, api, app):
        path = f"/v1/api-keys?tenant_id={uuid4()}"

        assert api.post(path, token=platform_token(), json=self.BODY).status_code == 422

    def test_comes_before_a_permission_that_the_creator_lacks(self, api, owner):
        assert api.post("/v1/api-keys", token=owner, json=self.BODY).status_code == 422

"""A tenant's effective flags over HTTP."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from app.auth.permissions import Permission, Role
from tests.factories import (
    create_api_key,
    create_member,
    create_override,
    create_preset,
    create_tenant,
    platform_token,
    preset_flag,
)

URL = "/v1/billing/flags"


def effective(api, tenant, token=None):
    query = {} if token else {"tenant_id": str(tenant.id)}
    answer = api.get(URL, token=token or platform_token(), query_string=query)
    assert answer.status_code == 200, answer.json
    assert answer.json["next_cursor"] is None
    return {flag["key"]: flag for flag in answer.json["data"]}


class TestListFlags:
    def test_shows_preset_override_and_what_holds(self, api):
        preset, tenant = create_preset(beta=False, seats=5.0), create_tenant()
        override = create_override(tenant, preset, "beta", True)
        _, _, token = create_member(tenant, Role.MEMBER)

        flags = effective(api, tenant, token)

        assert flags["beta"] == {
            "key": "beta",
            "type": "boolean",
            "value": True,
            "source": "override",
            "preset_value": False,
            "override_value": True,
            "override_id": str(override.id),
            "expires_at": None,
            "is_locked": False,
        }
        assert (flags["seats"]["source"], flags["seats"]["override_id"]) == ("preset", None)
        assert json.dumps(flags["seats"]["value"]) == "5.0"

    def test_keeps_the_presets_order(self, api):
        create_preset(zebra=1, ant=2, mouse=3)

        assert list(effective(api, create_tenant())) == ["zebra", "ant", "mouse"]

    def test_has_the_presets_value_once_the_override_has_expired(self, api):
        preset, tenant = create_preset(beta=False, theme="a"), create_tenant()
        now = datetime.now(UTC)
        past, future = now - timedelta(seconds=1), now + timedelta(hours=1)
        create_override(tenant, preset, "beta", True, expires_at=past)
        create_override(tenant, preset, "theme", "b", expires_at=future)

        flags = effective(api, tenant)

        assert (flags["beta"]["value"], flags["beta"]["source"]) == (False, "preset")
        assert flags["beta"]["expires_at"] == past.isoformat().replace("+00:00", "Z")
        assert (flags["theme"]["value"], flags["theme"]["source"]) == ("b", "override")

    def test_ignores_the_overrides_of_other_plans_and_tenants(self, api):
        preset, growth = create_preset(beta=False), create_preset("growth", beta=False)
        tenant = create_tenant()
        create_override(tenant, growth, "beta", True)
        create_override(create_tenant(), preset, "beta", True)

        assert effective(api, tenant)["beta"]["value"] is False

    def test_follows_a_changed_preset_at_once(self, api):
        preset, tenant = create_preset(beta=False, old=1), create_tenant()

        api.patch(
            f"/v1/billing/plans/{preset.id}",
            token=platform_token(),
            json={"flags": [preset_flag("beta", "now a text")]},
        )

        flags = effective(api, tenant)
        assert list(flags) == ["beta"]
        assert (flags["beta"]["value"], flags["beta"]["source"]) == ("now a text", "preset")

    def test_has_none_where_the_plan_has_no_preset(self, api):
        assert effective(api, create_tenant(plan_name="none")) == {}

    def test_has_the_presets_values_while_the_tenant_is_suspended(self, api):
        preset, tenant = create_preset(beta=False), create_tenant(is_active=False)
        create_override(tenant, preset, "beta", True)

        assert effective(api, tenant)["beta"]["value"] is False

    def test_needs_a_tenant(self, api):
        answer = api.get(URL, token=platform_token())

        assert answer.status_code == 422
        assert answer.json["detail"][0]["loc"] == ["query", "tenant_id"]

    def test_does_not_find_another_tenant(self, api):
        _, _, token = create_member(create_tenant(), Role.OWNER)

        answer = api.get(URL, token=token, query_string={"tenant_id": str(create_tenant().id)})

        assert answer.status_code == 404

    @pytest.mark.parametrize("role", list(Role))
    def test_every_role_may_read_them(self, api, role):
        _, _, token = create_member(create_tenant(), role)

        assert api.get(URL, token=token).status_code == 200

    def test_needs_flags_read(self, api):
        key = create_api_key(create_tenant(), [Permission.USERS_READ])

        assert api.get(URL, token=key).status_code == 403

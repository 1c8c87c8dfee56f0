"""A tenant's effective flags over HTTP."""

import json

from app.auth.permissions import Role
from tests.factories import (
    create_member,
    create_override,
    create_preset,
    create_tenant,
    platform_token,
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

    def test_ignores_the_overrides_of_other_plans_and_tenants(self, api):
        preset, growth = create_preset(beta=False), create_preset("growth", beta=False)
        tenant = create_tenant()
        create_override(tenant, growth, "beta", True)
        create_override(create_tenant(), preset, "beta", True)

        assert effective(api, tenant)["beta"]["value"] is False

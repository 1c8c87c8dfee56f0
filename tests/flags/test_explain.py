"""GET /v1/billing/flags/{key}/explain."""

from datetime import UTC, datetime

import pytest

from tests.factories import (
    create_member,
    create_override,
    create_preset,
    create_tenant,
    platform_token,
)

PATH = "/v1/billing/flags/beta/explain"
PAST, FUTURE = datetime(2020, 1, 1, tzinfo=UTC), datetime(2999, 1, 1, tzinfo=UTC)


@pytest.fixture
def preset(app):
    return create_preset(beta=False)


@pytest.fixture
def explain(api):
    def ask(tenant, **query):
        token = create_member(tenant, role="admin")[2] if tenant.is_active else platform_token()
        query = query if tenant.is_active else {"tenant_id": str(tenant.id)}
        answer = api.get(PATH, token=token, query_string=query)
        assert answer.status_code == 200, answer.text
        return answer.get_json()["data"]

    return ask


class TestExplain:
    def test_shows_everything_about_a_flag(self, explain, preset):
        tenant = create_tenant()
        override = create_override(tenant, preset, "beta", True, expires_at=FUTURE, reason="Pilot")

        assert explain(tenant) == {
            "tenant_id": str(tenant.id),
            "is_suspended": False,
            "plan_name": "free",
            "flag_key": "beta",
            "flag_type": "boolean",
            "value": True,
            "decided_by": "override",
            "because": "The tenant's override takes precedence over the plan's preset.",
            "preset_value": False,
            "is_locked": False,
            "override_id": str(override.id),
            "override_value": True,
            "expires_at": "2999-01-01T00:00:00Z",
            "reason": "Pilot",
            "rule": None,
            "rules": [],
        }

    @pytest.mark.parametrize(
        ("tenant", "override", "decided_by"),
        [
            ({}, None, "preset"),
            ({}, {"flag_value": True}, "override"),
            ({}, {"flag_value": True, "expires_at": PAST}, "override_expired"),
            ({}, {"flag_value": "yes"}, "override_of_wrong_type"),
            ({"is_active": False}, {"flag_value": True}, "tenant_suspended"),
        ],
    )
    def test_agrees_with_the_list_of_flags(
        self, api, explain, preset, tenant, override, decided_by
    ):
        tenant = create_tenant(**tenant)
        if override:
            create_override(tenant, preset, "beta", **override)

        told = explain(tenant)

        query = {"tenant_id": str(tenant.id)}
        listed = api.get("/v1/billing/flags", token=platform_token(), query_string=query)
        (flag,) = listed.get_json()["data"]
        assert told["decided_by"] == decided_by
        assert told["value"] == flag["value"]
        assert told["is_suspended"] is not tenant.is_active

    @pytest.mark.parametrize("is_active", [True, False])
    def test_of_a_flag_that_the_plan_lacks_names_the_plans_that_have_it(
        self, explain, preset, is_active
    ):
        create_preset("pro", beta=True)
        create_preset("scale", beta=True)

        told = explain(create_tenant(plan_name="tiny", is_active=is_active))

        assert told["decided_by"] == "not_in_plan"
        assert (told["flag_type"], told["value"], told["override_id"]) == (None, None, None)
        assert told["is_suspended"] is not is_active
        assert told["because"] == (
            "No preset is named tiny, the tenant's plan. Plans that have it: free, pro, scale."
        )

    def test_of_a_flag_that_a_trial_had_says_what_ended(self, api, explain):
        create_preset("free")
        create_preset("pro", beta=True)
        tenant = create_tenant()
        path, token = f"/v1/tenants/{tenant.id}/plan", platform_token()
        api.put(path, token=token, json={"plan_name": "pro", "until": None})
        api.delete(path, token=token)

        because = explain(tenant)["because"]

        assert because.startswith(
            "The plan free does not have this flag. Plans that have it: pro."
            " The tenant had the plan pro until "
        )

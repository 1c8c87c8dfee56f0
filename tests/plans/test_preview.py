"""POST /v1/billing/plans/{preset_id}/preview."""

from app.audit.models import AuditEvent
from app.plans.models import PlanPreset
from tests import database
from tests.factories import (
    create_limits,
    create_member,
    create_override,
    create_preset,
    create_tenant,
    limit_flag,
    platform_token,
    preset_flag,
)

NOTHING = {
    "flags_added": [],
    "flags_removed": [],
    "flags_changed": [],
    "overrides_lost": [],
    "limits_below_usage": [],
}


def preview(api, preset, token=None, headers=None, **body):
    path = f"/v1/billing/plans/{preset.id}/preview"
    return api.post(path, token=token or platform_token(), json=body, headers=headers)


def consume(api, tenant, amount, feature="calls"):
    body = {"feature": feature, "amount": amount, "tenant_id": str(tenant.id)}
    assert api.post("/v1/usage/consume", token=platform_token(), json=body).status_code == 200


class TestPreview:
    def test_tells_what_would_change_and_changes_nothing(self, api):
        preset = create_preset("growth", beta=True, theme="plain", depth=1)
        tenants = [create_tenant(plan_name="growth") for _ in range(2)]
        for tenant in tenants:
            create_override(tenant, preset, "beta", False)
        create_override(tenants[0], preset, "depth", 2)
        new, theme = preset_flag("new", 1), preset_flag("theme", "dark")

        answer = preview(api, preset, flags=[theme, new, preset_flag("depth", "deep")])

        assert answer.status_code == 200
        assert answer.get_json()["data"] == {
            "name": "growth",
            "display_name": "",
            "tenants": 2,
            "flags_added": [new],
            "flags_removed": [preset.flags[0]],
            "flags_changed": [
                {"flag_key": "theme", "before": preset.flags[1], "after": theme},
                {
                    "flag_key": "depth",
                    "before": preset.flags[2],
                    "after": preset_flag("depth", "deep"),
                },
            ],
            "overrides_lost": [
                {"flag_key": "beta", "overrides": 2},
                {"flag_key": "depth", "overrides": 1},
            ],
            "limits_below_usage": [],
        }
        assert database.row(PlanPreset) == preset
        assert database.rows(AuditEvent) == []

    def test_of_the_preset_as_it_is_tells_no_change(self, api):
        preset = create_preset("growth", beta=True)
        path = f"/v1/billing/plans/{preset.id}"
        read = api.get(path, token=platform_token()).get_json()["data"]
        for flag in read["flags"]:
            del flag["is_locked"]

        told = preview(api, preset, **read).get_json()["data"]

        assert told == {"name": "growth", "display_name": "", "tenants": 0, **NOTHING}

    def test_tells_the_lowered_limits_that_are_exceeded(self, api):
        preset = create_limits("free", limit_flag(), limit_flag("jobs"), limit_flag("unlowered"))
        small, large, exempt = (create_tenant() for _ in range(3))
        create_override(exempt, preset, "calls", 1000)
        for tenant, amount in ((small, 5), (large, 60), (exempt, 70)):
            consume(api, tenant, amount)
            consume(api, tenant, 50, "unlowered")
        consume(api, create_tenant(), 11)

        flags = [limit_flag(most=10), limit_flag("jobs", 1), limit_flag("unlowered")]
        told = preview(api, preset, flags=flags).get_json()["data"]

        assert told["limits_below_usage"] == [
            {"feature": "calls", "limit": 10, "tenants": 2, "most_used": 60}
        ]

    def test_compares_the_count_of_the_period(self, api):
        preset, tenant = create_limits("free", limit_flag(period="none")), create_tenant()
        consume(api, tenant, 60)
        of_months = [limit_flag(most=10, period="month")]

        before = preview(api, preset, flags=of_months).get_json()["data"]
        path = f"/v1/billing/plans/{preset.id}"
        api.patch(path, token=platform_token(), json={"flags": [limit_flag(period="month")]})
        consume(api, tenant, 20)
        after = preview(api, preset, flags=of_months).get_json()["data"]

        assert before["limits_below_usage"] == []
        assert after["limits_below_usage"] == [
            {"feature": "calls", "limit": 10, "tenants": 1, "most_used": 20}
        ]

    def test_counts_the_seats(self, api):
        preset, tenant = create_preset("free"), create_tenant()
        for _ in range(3):
            create_member(tenant)

        told = preview(api, preset, flags=[limit_flag("seats", 2)]).get_json()["data"]

        assert told["limits_below_usage"] == [
            {"feature": "seats", "limit": 2, "tenants": 1, "most_used": 3}
        ]

    def test_answers_the_errors_of_the_update(self, api):
        preset = create_preset("growth")
        twice = [preset_flag("a", 1), preset_flag("a", 1)]

        assert preview(api, preset, flags=twice).status_code == 422
        assert preview(api, preset, created_at="2020-01-01T00:00:00Z").status_code == 422
        assert preview(api, preset, headers={"If-Match": '"7"'}).status_code == 412
        unknown = "/v1/billing/plans/01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f/preview"
        assert api.post(unknown, token=platform_token(), json={}).status_code == 404

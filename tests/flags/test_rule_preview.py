"""How many tenants new rules would change."""

import pytest

from app.flags import rule_preview
from tests.factories import create_override, create_tenant, platform_token
from tests.flags.test_rules import condition, preset_of, rollout, rule

GOLD = condition("tenant.meta_data.tier", "eq", "gold")


@pytest.fixture
def preview(api):
    def preview(preset, *rules, key="beta", status=200):
        answer = api.post(
            f"/v1/billing/plans/{preset.id}/flags/{key}/preview",
            token=platform_token(),
            json={"rules": rules},
        )
        assert answer.status_code == status, answer.json
        return answer.json.get("data") or answer.json["detail"]

    return preview


class TestPreview:
    def test_counts_those_with_another_value(self, preview):
        preset = preset_of(rule())
        tenants = [create_tenant(meta_data={"tier": t, "big": "x" * 100}) for t in ("gold", "iron")]
        create_override(create_tenant(), preset, "beta", True)
        create_tenant(is_active=False)
        create_tenant(plan_name="other")

        assert preview(preset, rule(when=GOLD)) == {
            "tenants": 4,
            "is_complete": True,
            "changed": 1,
            "changes": [{"tenant_id": str(tenants[1].id), "before": True, "after": False}],
        }

    def test_reads_in_slices_and_shows_the_first(self, preview, monkeypatch):
        monkeypatch.setattr(rule_preview, "SLICE", 2)
        monkeypatch.setattr(rule_preview, "SHOWN", 3)
        preset = preset_of()
        tenants = [create_tenant() for _ in range(5)]

        found = preview(preset, rollout(100))

        assert (found["tenants"], found["changed"], found["is_complete"]) == (5, 5, True)
        assert [one["tenant_id"] for one in found["changes"]] == [str(t.id) for t in tenants[:3]]

    def test_says_where_it_stopped(self, preview, monkeypatch):
        monkeypatch.setattr(rule_preview, "SLICE", 2)
        monkeypatch.setattr(rule_preview, "MAX_TENANTS", 2)
        preset = preset_of()
        for _ in range(3):
            create_tenant()

        found = preview(preset, rollout(100))

        assert (found["tenants"], found["is_complete"]) == (2, False)

    def test_refuses_what_the_update_refuses(self, preview):
        [refusal] = preview(preset_of(), rule("text"), status=422)

        assert refusal["loc"] == ["body", "rules", 0, "value"]

    def test_of_an_unknown_flag_is_404(self, preview):
        preview(preset_of(), key="unknown", status=404)

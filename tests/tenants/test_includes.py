"""``include=plan_source`` and ``include=limits`` of tenants."""

from app.auth.permissions import Permission
from tests.factories import (
    create_api_key,
    create_limits,
    create_subscription,
    create_tenant,
    limit_flag,
    platform_token,
)


def included(api, *names, token=None, **query):
    asked = {**query, "include": ",".join(names)}
    answer = api.get("/v1/tenants", token=token or platform_token(), query_string=asked)
    return {item["id"]: item for item in answer.get_json()["data"]}


class TestPlanSource:
    def test_agrees_with_the_explanation(self, api):
        create_limits("growth")
        by_default, subscribed, kept, ended = (create_tenant() for _ in range(4))
        create_subscription(subscribed, plan_name="growth")
        create_subscription(kept, plan_name="typo")
        create_subscription(ended, plan_name="growth", bp_status="canceled")
        assigned = create_tenant()
        body = {"plan_name": "growth", "until": None, "reason": "Internal"}
        api.put(f"/v1/tenants/{assigned.id}/plan", token=platform_token(), json=body)

        found = included(api, "plan_source")

        wanted = [
            (by_default, "default"),
            (subscribed, "subscription"),
            (kept, "kept"),
            (ended, "default"),
            (assigned, "assignment"),
        ]
        for tenant, source in wanted:
            told = api.get(f"/v1/tenants/{tenant.id}/plan", token=platform_token()).get_json()
            assert found[str(tenant.id)]["plan_source"] == told["data"]["source"] == source

    def test_needs_to_read_billing(self, api):
        tenant = create_tenant()
        key = create_api_key(tenant, [Permission.TENANTS_READ])

        answer = api.get(f"/v1/tenants/{tenant.id}?include=plan_source", token=key)

        assert answer.status_code == 403


class TestSuspensionReason:
    def test_is_empty_unless_somebody_gave_one(self, api):
        active, suspended = create_tenant(), create_tenant(is_active=False)
        explained = create_tenant()
        path = f"/v1/tenants/{explained.id}/suspend"
        api.post(path, token=platform_token(), json={"reason": "Unpaid."})

        found = included(api, "suspension_reason")

        reasons = [
            found[str(one.id)]["suspension_reason"] for one in (active, suspended, explained)
        ]
        assert reasons == ["", "", "Unpaid."]


class TestLimits:
    def test_show_what_is_used(self, api):
        create_limits("free", limit_flag(), limit_flag("api", -1, period="day", policy="soft"))
        tenant, other = create_tenant(), create_tenant(plan_name="none")
        body = {"feature": "calls", "amount": 7, "tenant_id": str(tenant.id)}
        api.post("/v1/usage/consume", token=platform_token(), json=body)

        found = included(api, "limits")

        api_limit, calls = found[str(tenant.id)]["limits"]
        assert calls == {
            "feature": "calls", "limit": 100, "used": 7, "policy": "hard", "resets_at": None,
        }  # fmt: skip
        assert (api_limit["limit"], api_limit["policy"]) == (-1, "soft")
        assert api_limit["resets_at"].endswith("T00:00:00Z")
        assert found[str(other.id)]["limits"] == []

    def test_needs_to_read_usage(self, api):
        tenant = create_tenant()
        key = create_api_key(tenant, [Permission.TENANTS_READ])

        answer = api.get(f"/v1/tenants/{tenant.id}?include=limits", token=key)

        assert answer.status_code == 403

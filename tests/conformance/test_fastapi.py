"""Requests answered as a FastAPI service answered them, by the real service on data of its own."""

import pytest
from flask import Flask

from tests.conformance.fastapi_cases import LEVELS, Answer, Case, levels, load_cases, send
from tests.factories import create_tenant, platform_token

Results = list[tuple[Case, Answer]]


class Caller:
    """A platform superadmin who makes what the cases need through the API."""

    def __init__(self, app: Flask) -> None:
        self._client = app.test_client()
        self.token = platform_token(tenant=create_tenant())

    def create(self, path: str, **body: object) -> str:
        answer = self._client.post(
            path, json=body, headers={"Authorization": f"Bearer {self.token}"}
        )
        assert answer.status_code in (200, 201), answer.text
        return answer.json["data"]["id"]

    def create_member(self, tenant_id: str, name: str, role: str) -> tuple[str, str]:
        user_id = self.create(
            f"/v1/users?tenant_id={tenant_id}", idp_user_id=name, email=f"{name}@example.com"
        )
        membership_id = self.create(
            f"/v1/memberships/tenant?tenant_id={tenant_id}", user_id=user_id, role=role
        )
        return user_id, membership_id


def create_data(caller: Caller) -> dict[str, str]:
    """A tenant with two owners besides the member whose role changes, and one of everything."""
    tenant_id = caller.create("/v1/tenants", idp_org_id="org_recorded", name="Recorded")
    flag = {"flag_key": "limits", "flag_type": "json", "default_value": {}}
    caller.create("/v1/billing/plans", name="free", flags=[flag])
    caller.create_member(tenant_id, "first-owner", "owner")
    caller.create_member(tenant_id, "second-owner", "owner")
    user_id, membership_id = caller.create_member(tenant_id, "somebody", "member")
    subscription_id = caller.create(
        f"/v1/billing/subscriptions?tenant_id={tenant_id}",
        bp_subscription_id="sub_1",
        bp_customer_id="cus_1",
        bp_plan_id="plan_1",
        bp_status="active",
        plan_name="free",
        start_date="2026-01-01T00:00:00Z",
        billing_cycle="monthly",
        per_cycle_billing_amount=4900,
    )
    override_id = caller.create(
        f"/v1/billing/flags/overrides?tenant_id={tenant_id}", flag_key="limits", flag_value={}
    )
    field_id = caller.create(
        f"/v1/custom-fields?tenant_id={tenant_id}",
        entity_type="recorded",
        field_key="restored",
        label="Restored",
        field_type="text",
    )
    caller.create(f"/v1/custom-fields/{field_id}/archive")
    return {
        "tenant_id": tenant_id,
        "user_id": user_id,
        "membership_id": membership_id,
        "subscription_id": subscription_id,
        "override_id": override_id,
        "field_id": field_id,
    }


@pytest.fixture(scope="module")
def results(app: Flask) -> Results:
    """Every recorded request with this service's answer."""
    caller = Caller(app)
    ids = create_data(caller)
    return [(case, send(app, case, ids, caller.token)) for case in load_cases()]


def failures(results: Results, level: str) -> list[str]:
    scored = [(case, answer) for case, answer in results if case["scored"]]
    assert scored
    return [
        f"{case['id']}: {answer}"[:400]
        for case, answer in scored
        if not levels(case, answer)[level]
    ]


class TestRecordedRequests:
    @pytest.mark.parametrize("level", LEVELS[:3])
    def test_statuses_locations_types_order_and_messages_are_fastapis(self, results, level):
        assert failures(results, level) == []

    def test_whole_bodies_are_fastapis_but_for_one_in_a_hundred(self, results):
        scored = sum(case["scored"] for case, _ in results)

        found = failures(results, "L3")

        assert len(found) <= scored / 100, found

    def test_what_fastapi_cannot_answer_is_answered(self, results):
        crashed = [case["id"] for case, (status, _) in results if status >= 500]

        assert crashed == []

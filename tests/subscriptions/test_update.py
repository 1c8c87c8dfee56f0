"""Updating a subscription: by the provider's side, by the tenant, late and twice."""

from datetime import UTC, datetime

import pytest

from app.auth.permissions import Permission, Role
from tests.factories import (
    create_api_key,
    create_member,
    create_subscription,
    create_tenant,
    platform_token,
)
from tests.subscriptions.support import audit_actions, audit_events, plan_of, stored

pytestmark = pytest.mark.usefixtures("presets")

OWN_FIELDS = {
    "auto_renew": False,
    "billing_address_line_1": "1 Main St",
    "billing_city": "Springfield",
    "billing_state": "IL",
    "billing_zip": "62701",
    "billing_country": "US",
    "billing_phone": "+1 217 555 0100",
    "billing_contact_name": "Ada",
    "billing_email": "ap@acme.com",
    "send_invoice_days_before_due": 7,
    "send_email_receipts": False,
    "send_paper_receipts": True,
}
PROVIDER_FIELDS = {
    "bp_customer_id": "cus_2",
    "bp_plan_id": "price_2",
    "bp_status": "past_due",
    "plan_name": "scale",
    "is_free_trial": True,
    "start_date": "2026-03-01T00:00:00Z",
    "billing_cycle": "annual",
    "per_cycle_billing_amount": 2**62,
}


def update(api, row, body, token=None, at=None, **headers):
    if at is not None:
        headers["X-Source-Timestamp"] = at
    return api.patch(
        f"/v1/billing/subscriptions/{row.id}",
        token=token or platform_token(),
        json=body,
        headers=headers,
    )


class TestUpdateSubscription:
    def test_sets_every_field_and_records_it_once(self, api, tenant, row):
        data = update(api, row, OWN_FIELDS | PROVIDER_FIELDS).json["data"]

        assert {name: data[name] for name in OWN_FIELDS} == OWN_FIELDS
        assert {name: data[name] for name in PROVIDER_FIELDS} == PROVIDER_FIELDS
        assert audit_actions(tenant) == ["subscription.updated", "tenant.plan_changed"]

    def test_records_only_what_differs(self, api, tenant, row):
        update(api, row, {"billing_city": "Springfield", "bp_status": "active"})

        (event,) = audit_events(tenant)
        assert (event.before, event.after) == (
            {"billing_city": ""},
            {"billing_city": "Springfield"},
        )

    def test_lets_the_tenant_change_its_address_contact_and_delivery(self, api, tenant, row):
        _, _, token = create_member(tenant, Role.BILLING)

        data = update(api, row, OWN_FIELDS, token).json["data"]

        assert {name: data[name] for name in OWN_FIELDS} == OWN_FIELDS

    @pytest.mark.parametrize("field", PROVIDER_FIELDS)
    def test_refuses_a_tenants_credential_the_providers_fields(self, api, field, tenant, row):
        _, _, owner = create_member(tenant, Role.OWNER)
        key = create_api_key(tenant, [Permission.BILLING_WRITE])

        for token in (owner, key):
            answer = update(api, row, {field: PROVIDER_FIELDS[field]}, token)

            assert (answer.status_code, answer.json["code"]) == (403, "provider_field")
        assert stored(row).version == 1

    def test_looks_for_the_row_before_it_refuses_a_providers_field(self, api, row):
        _, _, token = create_member(create_tenant(), Role.OWNER)

        assert update(api, row, {"plan_name": "scale"}, token).status_code == 404
        assert update(api, row, {"plan_name": 1}, token).status_code == 422

    def test_refuses_a_tenant_the_providers_clock(self, api, tenant, row):
        _, _, token = create_member(tenant, Role.OWNER)

        answer = update(api, row, {"billing_city": "X"}, token, at="2999-01-01T00:00:00Z")

        assert (answer.status_code, answer.json["code"]) == (403, "provider_field")

    @pytest.mark.parametrize("value", ["abc", '"1', 'W/"1"'])
    def test_tells_what_an_if_match_that_is_not_the_etag_can_be(self, api, value, row):
        answer = update(api, row, {"billing_city": "A"}, **{"If-Match": value})

        assert answer.status_code == 412
        assert "is not its ETag" in answer.json["detail"]

    @pytest.mark.parametrize("value", ["*", '"7", "1"', 'W/"7" ,"1"'])
    def test_takes_any_or_one_of_several_versions(self, api, value, row):
        answer = update(api, row, {"billing_city": "A"}, **{"If-Match": value})

        assert answer.status_code == 200


class TestSourceTimestamp:
    def test_ignores_what_is_older_than_the_newest_applied(self, api, row):
        update(api, row, {"plan_name": "new"}, at="2026-05-02T00:00:00Z")

        answer = update(api, row, {"plan_name": "old"}, at="2026-05-01T00:00:00Z")

        assert answer.status_code == 200
        assert answer.headers["X-Update-Ignored"] == "stale"
        assert answer.json["data"]["plan_name"] == "new"

    def test_ignores_a_duplicate(self, api, row):
        first = update(api, row, {"plan_name": "a"}, at="2026-05-02T00:00:00Z")

        again = update(api, row, {"plan_name": "b"}, at="2026-05-02T02:00:00+02:00")

        assert "X-Update-Ignored" not in first.headers
        assert again.headers["X-Update-Ignored"] == "stale"
        assert stored(row).plan_name == "a"

    def test_remembers_an_update_that_changed_nothing(self, api):
        row = create_subscription(create_tenant(), plan_name="a")
        update(api, row, {"plan_name": "a"}, at="2026-05-03T00:00:00Z")

        answer = update(api, row, {"plan_name": "b"}, at="2026-05-02T00:00:00Z")

        assert answer.headers["X-Update-Ignored"] == "stale"
        assert (answer.json["data"]["plan_name"], answer.headers["ETag"]) == ("a", '"1"')

    def test_does_not_bind_updates_without_it(self, api, row):
        update(api, row, {"plan_name": "a"}, at="2999-01-01T00:00:00Z")

        answer = update(api, row, {"plan_name": "b"})

        assert answer.json["data"]["plan_name"] == "b"
        assert stored(row).source_timestamp == datetime(2999, 1, 1, tzinfo=UTC)

    @pytest.mark.parametrize("value", ["yesterday", "2026-05-01T00:00:00"])
    def test_must_be_a_moment_with_an_offset(self, api, value, row):
        answer = update(api, row, {}, at=value)

        assert answer.status_code == 422
        assert answer.json["detail"][0]["loc"] == ["header", "x-source-timestamp"]

    def test_may_be_unix_time(self, api, row):
        update(api, row, {}, at="1767225600")

        assert stored(row).source_timestamp == datetime(2026, 1, 1, tzinfo=UTC)


class TestTenantsPlan:
    def test_is_that_of_the_latest_start_among_those_not_ended(self, api, tenant):
        early = create_subscription(tenant, start_date=datetime(2026, 1, 1, tzinfo=UTC))
        late = create_subscription(tenant, start_date=datetime(2026, 6, 1, tzinfo=UTC))

        update(api, early, {"plan_name": "early"})
        first = plan_of(tenant)
        update(api, late, {"plan_name": "late"})
        second = plan_of(tenant)
        update(api, late, {"bp_status": "incomplete_expired"})
        third = plan_of(tenant)

        assert [first, second, third] == ["free", "late", "early"]

    def test_is_that_of_the_latest_id_where_the_starts_are_equal(self, api, tenant):
        first = create_subscription(tenant, plan_name="first")
        create_subscription(tenant, plan_name="second")

        update(api, first, {"plan_name": "first again"})

        assert plan_of(tenant) == "second"

    def test_moves_with_the_start_date(self, api, tenant):
        create_subscription(tenant, plan_name="a", start_date=datetime(2026, 2, 1, tzinfo=UTC))
        other = create_subscription(tenant, plan_name="b")

        update(api, other, {"start_date": "2026-03-01T00:00:00Z"})

        assert plan_of(tenant) == "b"

    def test_stays_with_a_status_that_no_provider_is_known_to_use(self, api):
        tenant = create_tenant(plan_name="growth")
        row = create_subscription(tenant)

        update(api, row, {"bp_status": "weird"})

        assert plan_of(tenant) == "growth"

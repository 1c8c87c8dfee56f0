"""GET /v1/tenants/{tenant_id}/counts."""

from uuid import uuid4

import pytest

from app.auth.permissions import Permission
from app.core.clock import utcnow
from app.tenants import counts
from app.webhooks.deliveries.models import DeliveryStatus, WebhookDelivery
from tests.custom_fields.fields import create_field
from tests.factories import (
    create_api_key,
    create_limits,
    create_member,
    create_override,
    create_subscription,
    create_tenant,
    create_user,
    create_webhook_endpoint,
    limit_flag,
    platform_token,
    save,
)


@pytest.fixture
def tenant(app):
    """A tenant with something of each kind, beside another one."""
    tenant, other = create_tenant(), create_tenant()
    for one in (tenant, other):
        create_member(one, "owner")
        create_override(one, create_limits(f"plan-{one.slug}", limit_flag()), "calls", 1)
        create_field(one)
        create_api_key(one, [Permission.TENANTS_READ])
    create_member(tenant, "viewer")
    create_user(tenant, is_active=False)
    create_subscription(tenant)
    create_subscription(tenant, bp_status="canceled")
    create_api_key(tenant, [], revoked_at=utcnow())
    endpoint = create_webhook_endpoint(tenant.id)  # with a failed delivery
    save(
        WebhookDelivery,
        tenant_id=tenant.id,
        endpoint_id=endpoint.id,
        event_id=uuid4(),
        type="user.created",
        status=DeliveryStatus.PENDING.value,
        next_attempt_at=utcnow(),
    )
    return tenant


def counted(api, tenant, token):
    answer = api.get(f"/v1/tenants/{tenant.id}/counts", token=token)
    assert answer.status_code == 200, answer.text
    return answer.get_json()["data"]


class TestGet:
    def test_counts_what_the_tenant_has(self, api, tenant):
        found = counted(api, tenant, platform_token())

        assert found == {
            "tenant_id": str(tenant.id),
            "active_users": 2,
            "inactive_users": 1,
            "active_members": 2,
            "ended_members": 0,
            "members_by_role": {"owner": 1, "admin": 0, "billing": 0, "member": 0, "viewer": 1},
            "open_subscriptions": 1,
            "overrides": 1,
            "custom_fields": 1,
            "api_keys": 1,
            "webhook_endpoints": 1,
            "open_deliveries": 1,
        }

    def test_hides_what_the_credential_may_not_read(self, api, tenant):
        _, _, viewer = create_member(tenant, "viewer")
        key = create_api_key(tenant, [Permission.TENANTS_READ])

        hidden = {name for name, one in counted(api, tenant, viewer).items() if one is None}

        assert hidden == {"open_subscriptions", "api_keys", "webhook_endpoints", "open_deliveries"}
        assert {n for n, one in counted(api, tenant, key).items() if one is not None} == {
            "tenant_id"
        }

    def test_reads_a_bounded_number_of_rows(self, api, tenant, monkeypatch):
        monkeypatch.setattr(counts, "MOST", 1)

        assert counted(api, tenant, platform_token())["active_members"] == 1

"""Every write of a searched field keeps the terms current, in its own transaction."""

import pytest

from app.core.actors import SYSTEM_CLI
from app.core.db.writes import writes
from app.search.models import EntityType, SearchTerm
from app.subscriptions import service as subscriptions
from app.subscriptions.models import Subscription
from app.tenants import service as tenants
from app.tenants.models import Tenant
from app.users import service as users
from app.users.models import User
from tests import database, factories
from tests.database import platform_transaction
from tests.factories import platform_token
from tests.inbox.sending import Sender
from tests.search.finding import expected_terms, terms_of

MODELS = {EntityType.TENANT: Tenant, EntityType.USER: User, EntityType.SUBSCRIPTION: Subscription}


def check_terms() -> int:
    """Compare the terms of all rows with what they should be; the number of rows."""
    count = 0
    for entity_type, model in MODELS.items():
        for row in database.rows(model):
            assert terms_of(row) == expected_terms(entity_type, row), row
            count += 1
    return count


@pytest.fixture
def send(api):
    """Send a change as the platform; its ``data``."""

    def request(method, path, body, **query):
        answer = api.request(method, path, token=platform_token(), json=body, query_string=query)
        assert answer.status_code < 300, answer.text
        return answer.get_json()["data"]

    return request


@pytest.fixture
def tenant(send):
    return send("POST", "/v1/tenants", {"idp_org_id": "org_1", "name": "Acme Inc"})


class TestRequests:
    def test_of_tenants(self, send, tenant):
        path = f"/v1/tenants/{tenant['id']}"

        send("PATCH", path, {"name": "Beta Ltd", "slug": "beta", "idp_org_id": "org_2"})
        send("PATCH", path, {"primary_contact_email": "a.b@c.example"})
        send("PATCH", path, {"mailing_city": "Oslo"})

        assert check_terms() == 1
        assert "beta ltd" in {row.term for row in database.rows(SearchTerm)}

    def test_of_users(self, send, tenant):
        body = {"idp_user_id": "u1", "email": "ada@example.com", "first_name": "Ada"}
        user = send("POST", "/v1/users", body, tenant_id=tenant["id"])

        send("PATCH", f"/v1/users/{user['id']}", {"last_name": "Byron", "idp_user_id": "u2"})
        send("PATCH", f"/v1/users/{user['id']}", {"email": "b@example.com", "first_name": ""})
        send("PATCH", f"/v1/users/{user['id']}/meta_data", {"patches": {"a": "b"}})

        assert check_terms() == 2

    def test_of_subscriptions(self, send, tenant):
        body = {
            "bp_subscription_id": "sub_1", "bp_customer_id": "cus_1", "bp_plan_id": "price_1",
            "bp_status": "active", "plan_name": "pro", "start_date": "2026-01-01T00:00:00Z",
            "billing_cycle": "monthly", "per_cycle_billing_amount": 1,
        }  # fmt: skip
        made = send("POST", "/v1/billing/subscriptions", body, tenant_id=tenant["id"])
        path = f"/v1/billing/subscriptions/{made['id']}"

        send("PATCH", path, {"bp_customer_id": "cus_2", "plan_name": "scale"})
        send("PATCH", path, {"billing_email": "pay@example.com"})
        send("PATCH", path, {"per_cycle_billing_amount": 5})

        assert check_terms() == 2

    def test_that_are_refused_leave_the_terms(self, api, send, tenant):
        body = {"idp_user_id": "u1", "email": "ada@example.com"}
        user = send("POST", "/v1/users", body, tenant_id=tenant["id"])

        answer = api.patch(
            f"/v1/users/{user['id']}",
            token=platform_token(),
            json={"first_name": "New"},
            headers={"If-Match": '"9"'},
        )

        assert answer.status_code == 412
        assert check_terms() == 2


class TestServices:
    def test_change_rows_that_were_read(self, app):
        tenant = factories.create_tenant()
        people = [factories.create_user(tenant) for _ in range(3)]
        with platform_transaction(), writes() as w:
            values = {"name": "Read", "is_active": False}
            tenants.update_read(tenant, values, actor=SYSTEM_CLI, into=w)
            users.update_many(
                [(user, {"first_name": f"Name {n}"}) for n, user in enumerate(people)],
                actor=SYSTEM_CLI,
                into=w,
            )

        assert "read" in terms_of(tenant)
        assert [f"name {n}" in terms_of(user) for n, user in enumerate(people)] == [True] * 3

    def test_that_change_nothing_write_nothing(self, app):
        subscription = factories.create_subscription(factories.create_tenant())
        with platform_transaction():
            subscriptions.cancel(subscription.id, at_period_end=False, actor=SYSTEM_CLI)

        assert terms_of(subscription) == set()


class TestIdentityEvents:
    def test_write_the_terms_of_what_they_change(self, app, monkeypatch):
        sender = Sender(app, monkeypatch)
        at = "2026-01-05T09:00:0{}Z"
        member = {"organization_id": "org_9", "user_id": "user_9", "role": "member"}
        for second, (kind, data) in enumerate(
            [
                ("organization.created", {"id": "org_9", "name": "Acme"}),
                ("user.created", {"id": "user_9", "email": "a@b.example", "first_name": "Ada"}),
                ("membership.created", {"id": "m_9", **member}),
                ("user.updated", {"id": "user_9", "email": "c@d.example", "first_name": "Eve"}),
                ("organization.updated", {"id": "org_9", "name": "Renamed"}),
            ]
        ):
            body = {"type": kind, "timestamp": at.format(second), "data": data}
            assert sender.deliver("standard_webhooks", body).status == "succeeded"

        assert check_terms() == 2
        assert {"eve", "renamed"} <= {row.term for row in database.rows(SearchTerm)}

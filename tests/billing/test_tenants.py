"""Which tenant a subscription is of, the mapping of customers, and events that wait."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.audit.models import AuditEvent
from app.billing import mirror as rules
from app.billing.jobs import apply_waiting_events
from app.billing.mirror import Outcome
from app.billing.models import BillingCustomer
from app.inbox.models import WebhookEvent
from app.subscriptions.models import Subscription
from tests import database
from tests.billing.samples import document
from tests.billing.support import at, ended, snapshot, stored
from tests.database import platform_transaction, wait_for_lock
from tests.factories import create_member, create_tenant, platform_token, save

PATH = "/v1/billing/customers"


@pytest.fixture
def put(api):
    """Map a customer of Stripe as a superadmin."""

    def put(tenant, customer_id="cus_1", provider="stripe"):
        body = {"tenant_id": str(tenant.id)}
        return api.put(f"{PATH}/{provider}/{customer_id}", token=platform_token(), json=body)

    return put


def run(app, event):
    with app.app_context():
        apply_waiting_events()
    return status_of(event)


def waiting_event(customer_id="cus_1", source="stripe", body=b""):
    return save(
        WebhookEvent,
        source=source,
        external_id=f"evt {customer_id} {source}",
        event_type="customer.subscription.updated",
        status="waiting_tenant",
        detail=Outcome.WAITING.value,
        attempts=1,
        next_attempt_at=None,
        headers={},
        body=body or json.dumps({"customer": customer_id}).encode(),
        digest="",
        request_id="",
    )


def status_of(event):
    return database.row(WebhookEvent, id=event.id).status


class TestEveryWay:
    @pytest.mark.parametrize("name", ["id", "slug", "idp_org_id"])
    def test_the_subscription_names_it(self, mirror, tenant, name):
        assert mirror.apply(snapshot(tenant=str(getattr(tenant, name)))) is Outcome.APPLIED
        assert stored().tenant_id == tenant.id

    def test_the_event_names_it(self, mirror, tenant):
        mirror.apply(snapshot(tenant="nobody"), tenant=tenant.slug)

        assert stored().tenant_id == tenant.id

    def test_the_customer_names_it(self, mirror, tenant):
        assert mirror.note("cus_1", tenant.slug) is Outcome.APPLIED
        mirror.apply(snapshot())

        assert stored().tenant_id == tenant.id
        assert database.row(BillingCustomer).is_manual is False

    def test_a_known_subscription_of_the_customer_is_of_it(self, mirror, put, tenant):
        mirror.apply(snapshot(tenant=tenant.slug))
        put(create_tenant())
        mirror.apply(snapshot(subscription_id="sub_2"))

        assert {row.tenant_id for row in database.rows(Subscription)} == {tenant.id}

    def test_known_subscriptions_of_two_tenants_say_nothing(self, mirror, tenant):
        for number, one in enumerate((tenant, create_tenant())):
            mirror.apply(snapshot(subscription_id=f"sub_{number}", tenant=one.slug))

        assert mirror.apply(snapshot(subscription_id="sub_2")) is Outcome.WAITING

    def test_the_mapping_says_it(self, mirror, put, tenant):
        assert put(tenant).status_code == 200
        mirror.apply(snapshot())

        assert stored().tenant_id == tenant.id

    def test_of_another_provider_says_nothing(self, mirror, put, tenant):
        put(tenant, provider="paddle")
        mirror.apply(snapshot(tenant=tenant.slug), provider="polar")

        assert mirror.apply(snapshot(subscription_id="sub_2")) is Outcome.WAITING

    def test_without_any_nothing_is_written(self, mirror, tenant):
        assert mirror.apply(snapshot(customer_id="", tenant="nobody")) is Outcome.WAITING
        assert database.rows(Subscription) == database.rows(AuditEvent) == []

    def test_a_subscription_that_has_ended_does_not_wait(self, mirror):
        """Such as that of a deleted tenant."""
        assert mirror.apply(ended(tenant="nobody"), is_read=True) is Outcome.OVER
        assert mirror.apply(ended(tenant="nobody")) is Outcome.WAITING  # it may have been live

    def test_a_known_subscription_stays_with_its_tenant(self, mirror, put, tenant):
        mirror.apply(snapshot(tenant=tenant.slug), 1)
        other = create_tenant()
        put(other)
        mirror.note("cus_1", other.slug)
        mirror.apply(snapshot(tenant=other.slug, amount=1), 2)

        assert (stored().tenant_id, stored().per_cycle_billing_amount) == (tenant.id, 1)


class TestTheCustomer:
    def test_is_read_only_where_it_may_decide(self, mirror, tenant):
        def needs(one, tenant=""):
            return mirror.run(lambda: rules.needs_customer("stripe", one, tenant))

        assert needs(snapshot())
        assert not needs(snapshot(tenant=tenant.slug))
        assert not needs(snapshot(), tenant.slug)
        assert not needs(snapshot(customer_id=""))
        mirror.apply(snapshot(tenant=tenant.slug))
        assert not needs(snapshot())

    def test_that_names_no_tenant_any_more_is_forgotten(self, mirror, put, tenant):
        mirror.note("cus_1", tenant.slug)
        mirror.note("cus_1")
        assert database.rows(BillingCustomer) == []

        put(tenant)
        mirror.note("cus_1")
        assert database.row(BillingCustomer).is_manual is True

    def test_keeps_the_tenant_that_an_operator_has_set(self, mirror, put, tenant):
        put(tenant)
        mirror.note("cus_1", create_tenant().slug)
        mirror.note("cus_1")
        mirror.apply(snapshot())

        assert stored().tenant_id == tenant.id

    def test_of_an_older_event_is_not_that_of_a_newer_one(self, mirror, tenant):
        mirror.note("cus_1", tenant.slug, at=at(2))

        assert mirror.note("cus_1", create_tenant().slug, at=at(1)) is Outcome.STALE
        assert mirror.note("cus_1", at=at(1)) is Outcome.STALE
        assert database.row(BillingCustomer).tenant_id == tenant.id

    def test_that_is_read_counts_though_an_event_has_a_later_time(self, mirror, tenant):
        mirror.note("cus_1", create_tenant().slug, at=at(10**6))
        mirror.note("cus_1", tenant.slug)

        assert database.row(BillingCustomer).tenant_id == tenant.id

    def test_whose_external_id_is_no_tenants_does_not_wait(self, mirror, tenant):
        assert mirror.note("cus_1", external_id="crm-1") is Outcome.APPLIED
        assert database.rows(BillingCustomer) == []
        mirror.note("cus_1", external_id=tenant.slug)

        assert database.row(BillingCustomer).tenant_id == tenant.id

    def test_that_names_an_unknown_tenant_waits(self, mirror):
        assert mirror.note("cus_1", "nobody") is Outcome.WAITING
        assert database.rows(BillingCustomer) == []


class TestWaiting:
    def test_events_of_the_customer_are_released_by_a_mapping(self, put, tenant):
        ours, other, foreign = (
            waiting_event(),
            waiting_event("cus_2"),
            waiting_event(source="paddle"),
        )

        put(tenant)

        assert [status_of(one) for one in (ours, other, foreign)] == [
            "pending",
            "waiting_tenant",
            "waiting_tenant",
        ]
        row = database.row(WebhookEvent, id=ours.id)
        assert (row.attempts, row.detail) == (0, "")
        assert row.next_attempt_at is not None

    def test_events_are_released_by_the_customers_metadata(self, mirror, tenant):
        event = waiting_event()

        mirror.note("cus_1", tenant.slug)

        assert status_of(event) == "pending"

    def test_the_job_finds_tenants_that_have_come_and_leaves_the_others(self, app):
        body = document("stripe", "customer.subscription.created")
        body["data"]["object"]["metadata"] = {"tenant_id": "late"}
        waiting = waiting_event(body=json.dumps(body).encode())
        unreadable = waiting_event("other")

        first = run(app, waiting)
        create_tenant(slug="late")
        second = run(app, waiting)

        assert (first, second) == ("waiting_tenant", "pending")
        assert status_of(unreadable) == "pending"  # it fails then, and is told

    def test_a_mapping_that_comes_while_an_event_is_applied_is_not_lost(
        self, app, mirror, put, tenant
    ):
        """The event waits for the lock, and finds the mapping."""
        with ThreadPoolExecutor() as threads:
            with platform_transaction():
                key = {"provider": "stripe", "subscription_id": "sub_1"}
                rules.LOCK.execute(**key)
                applied = threads.submit(mirror.apply, snapshot())
                wait_for_lock(applied)
                assert threads.submit(put, tenant).result().status_code == 200
            assert applied.result() is Outcome.APPLIED


class TestTheApi:
    def test_maps_changes_and_deletes_with_audit_rows(self, api, put, tenant):
        other = create_tenant()
        first = put(tenant).get_json()["data"]
        again = put(tenant).get_json()["data"]
        second = put(other).get_json()["data"]
        gone = api.delete(f"{PATH}/stripe/cus_1", token=platform_token())
        missing = api.delete(f"{PATH}/stripe/cus_1", token=platform_token())

        assert first == again
        assert (first["tenant_id"], first["is_manual"]) == (str(tenant.id), True)
        assert (second["id"], second["tenant_id"]) == (first["id"], str(other.id))
        assert (gone.status_code, missing.status_code) == (204, 404)
        audited = [
            (row.action, row.tenant_id)
            for row in sorted(database.rows(AuditEvent), key=lambda row: row.id)
        ]
        assert audited == [
            ("billing_customer.mapped", tenant.id),
            ("billing_customer.mapped", other.id),
            ("billing_customer.deleted", other.id),
        ]

    def test_lists_a_tenants_own(self, api, put, tenant, owner):
        put(tenant)
        put(create_tenant(), "cus_2")
        _, _, member = create_member(tenant, role="member")

        own = api.get(PATH, token=owner).get_json()["data"]
        every = api.get(PATH, token=platform_token()).get_json()["data"]
        of_tenant = api.get(f"{PATH}?tenant_id={tenant.id}", token=platform_token())

        assert [row["customer_id"] for row in own] == ["cus_1"]
        assert len(every) == 2
        assert of_tenant.get_json()["data"] == own
        assert api.get(PATH, token=member).status_code == 403
        assert api.get(f"{PATH}?provider=paddle", token=owner).get_json()["data"] == []

    def test_refuses_a_tenant_that_does_not_exist(self, api):
        body = {"tenant_id": "01936f2e-7a3b-7c1d-9e4f-2b6a8c0d1e2f"}

        answer = api.put(f"{PATH}/stripe/cus_1", token=platform_token(), json=body)

        assert answer.status_code == 422
        assert answer.get_json()["detail"][0]["loc"] == ["body", "tenant_id"]

    @pytest.mark.parametrize("path", ["other/cus_1", "Stripe/cus_1", f"stripe/{'x' * 256}"])
    def test_knows_no_other_provider_and_no_impossible_id(self, api, tenant, path):
        body = {"tenant_id": str(tenant.id)}

        assert api.put(f"{PATH}/{path}", token=platform_token(), json=body).status_code == 404


class TestTheListOfWhatWaits:
    def waiting(self, api):
        return api.get(f"{PATH}/waiting", token=platform_token()).get_json()["data"]

    def test_has_each_customer_once_with_the_oldest_event(self, api):
        body = json.dumps(document("stripe", "customer.subscription.updated--active")).encode()
        first, _ = (waiting_event(f"cus_{number}", body=body) for number in range(2))
        waiting_event("unreadable", body=b"{}")
        waiting_event("unknown", source="workos")

        found = {one["event_id"]: one for one in self.waiting(api)}

        assert len(found) == 3
        customer = json.loads(body)["data"]["object"]["customer"]
        assert found[str(first.id)]["customer_id"] == customer
        assert [one["events"] for one in found.values()] == [2, 1, 1]

    def test_is_empty_once_the_customer_has_its_tenant(self, api, put, tenant):
        body = json.dumps(document("stripe", "customer.subscription.updated--active")).encode()
        waiting_event(body=body)
        (one,) = self.waiting(api)

        assert put(tenant, one["customer_id"]).status_code == 200

        assert self.waiting(api) == []

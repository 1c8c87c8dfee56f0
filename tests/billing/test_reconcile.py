"""The comparison with the providers: it finds every difference, once, whatever interrupts it."""

import json
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from flask import Flask

from app import create_app
from app.billing import health, jobs, reconcile
from app.billing.api import ReadFailed
from app.billing.models import BillingComparison
from app.billing.providers import PROVIDERS
from app.core.db import tenancy
from app.core.jobs.queues import Queue
from app.core.jobs.worker import make_worker
from app.inbox.models import WebhookEvent
from app.subscriptions.models import Subscription
from tests import database
from tests.billing.reading import reader_of, service, wait_for
from tests.billing.simulated.base import Line, Simulated
from tests.billing.simulated.lemonsqueezy import LemonSqueezy
from tests.billing.simulated.stripe import Stripe
from tests.billing.simulated.stripe import Subscription as Simulation
from tests.billing.support import stored
from tests.database import query, row, rows
from tests.factories import create_subscription, platform_token
from tests.inbox.sending import all_events

PROVIDER = PROVIDERS["stripe"]


def work_off(app: Flask) -> None:
    with app.app_context():
        make_worker(app, [Queue.MAINTENANCE]).work(burst=True, logging_level="WARNING")


def compare(app: Flask, name: str = "stripe", *, steps: int | None = None) -> BillingComparison:
    """A whole comparison, or so many steps of one."""
    provider = PROVIDERS[name]
    with app.app_context():
        with database.platform_transaction():
            reconcile.begin(provider)
        working = reconcile.work(provider, 600)
        for number, _ in enumerate(working, start=1):
            if number == steps:
                working.close()
    return row(BillingComparison, provider=name)


def let_wait(app: Flask) -> WebhookEvent:
    """The only event, once it waits for its tenant."""
    (event,) = all_events()
    with reader_of(app):
        return wait_for(str(event.id), status="waiting_tenant")


def preview(app: Flask) -> list[tuple[str, tuple[str, ...]]]:
    with app.app_context():
        found = [one for page in reconcile.preview(PROVIDER) for one in page if one.kinds]
    return [(one.subscription_id, one.kinds) for one in found]


def drift() -> list[Any]:
    """The changes of the audit rows, oldest first."""
    return query(
        "SELECT before, after FROM audit_events WHERE action = 'subscription.drift_repaired'"
        " ORDER BY created_at, id"
    )


def quietly(account: Simulated, change: str, subscription: Simulation) -> None:
    account.apply(change, subscription, is_told=False)


class TestDrift:
    def test_a_first_comparison_adds_all_subscriptions(self, reading, stripe, tenant, named):
        for _ in range(3):
            stripe.create(is_told=False, **named)

        state = compare(reading)

        assert state.counts == {"compared": 0, "created": 3, "repaired": 0}
        assert {one.bp_provider for one in rows(Subscription)} == {"stripe"}
        assert drift() == []

    def test_items_after_the_first_ten_are_compared(self, reading, stripe, named):
        one = stripe.create(*(Line(f"p{n}") for n in range(12)), is_told=False, **named)
        compare(reading)
        stripe.change(one, *(Line(f"p{n}", 2 if n == 11 else 1) for n in range(12)), is_told=False)

        assert compare(reading).counts["quantity"] == 1
        assert sum(item["quantity"] for item in row(Subscription).items) == 13

    def test_is_repaired_and_told_with_before_and_after(self, reading, stripe, named):
        one = stripe.create(is_told=False, **named)
        compare(reading)
        quietly(stripe, "fail", one)

        state = compare(reading)

        assert state.counts == {"compared": 1, "repaired": 1, "class": 1}
        assert compare(reading).counts == {"compared": 1, "repaired": 0}
        ((before, after),) = drift()
        assert (before["bp_status"], after["bp_status"]) == ("active", "past_due")
        assert (before["status_class"], after["status_class"]) == ("live", "past_due")
        (event,) = query("SELECT type FROM event_outbox WHERE type = 'subscription.drift_repaired'")
        assert event[0] == "subscription.drift_repaired"

    def test_what_was_read_later_stays(self, reading, stripe, named):
        stripe.create(is_told=False, **named)
        compare(reading)
        database.execute(
            "UPDATE subscriptions SET bp_status = 'past_due', status_class = 'past_due',"
            " read_at = now() + interval '1 hour'"
        )

        state = compare(reading)

        assert state.counts["repaired"] == 0
        assert row(Subscription).bp_status == "past_due"

    def test_what_is_the_same_is_marked_and_not_written(self, reading, stripe, named):
        stripe.create(is_told=False, **named)
        compare(reading)
        before = row(Subscription)

        state = compare(reading)

        after = row(Subscription)
        assert after.read_at >= state.started_at > before.read_at
        assert (after.version, after.updated_at) == (before.version, before.updated_at)

    def test_an_id_of_another_providers_subscription_is_left_out(
        self, reading, stripe, tenant, named
    ):
        one = stripe.create(is_told=False, **named)
        create_subscription(tenant, bp_subscription_id=one.id, bp_provider="paddle")

        state = compare(reading)

        assert state.counts == {"compared": 0, "repaired": 0}
        assert row(Subscription).bp_provider == "paddle"

    def test_the_other_mode_is_left_out(self, reading, stripe, named):
        stripe.is_live = False
        stripe.create(is_told=False, **named)

        assert compare(reading).counts == {"compared": 0, "repaired": 0}
        assert rows(Subscription) == []


class TestTenants:
    def test_without_one_an_event_waits_once_and_is_applied_with_the_mapping(
        self, reading, stripe, tenant
    ):
        one = stripe.create(is_told=False)
        compare(reading)
        state = compare(reading)

        event = let_wait(reading)
        assert (event.event_type, event.status) == ("reconcile", "waiting_tenant")
        assert (event.external_id, state.counts["waiting"]) == (f"reconcile:{one.id}", 1)
        path = f"/v1/billing/customers/stripe/{one.customer.id}"
        headers = {"Authorization": f"Bearer {platform_token()}"}
        answer = reading.test_client().put(
            path, json={"tenant_id": str(tenant.id)}, headers=headers
        )
        assert answer.status_code == 200
        with reader_of(reading):
            applied = wait_for(str(event.id), status="succeeded")
        assert applied.status == "succeeded"
        assert row(Subscription).tenant_id == tenant.id

    def test_of_the_customers_metadata_is_read(self, reading, stripe, tenant):
        customer = stripe.create_customer(tenant=tenant.slug, is_told=False)
        stripe.create(customer=customer, is_told=False)
        stripe.create(customer=customer, is_told=False)

        assert compare(reading).counts["created"] == 2
        paths = [one.path for one in stripe.api.requests]
        assert sum(path.startswith("/v1/customers/") for path in paths) == 1

    def test_is_not_waited_for_by_what_has_ended(self, reading, stripe):
        one = stripe.create(is_told=False)
        quietly(stripe, "end", one)

        assert compare(reading).counts == {"compared": 0, "repaired": 0}
        assert all_events() == []


class TestMissing:
    def test_ends_after_the_second_comparison(self, reading, stripe, named):
        gone = stripe.create(is_told=False, **named)
        stripe.create(is_told=False, **named)
        compare(reading)
        self.remove(stripe, gone)

        first = compare(reading)
        missed = stored(bp_subscription_id=gone.id)
        second = compare(reading)
        ended = stored(bp_subscription_id=gone.id)
        third = compare(reading)

        assert (missed.status_class, missed.missing_since is None) == ("live", False)
        assert (first.counts["missing"], first.counts["repaired"]) == (1, 0)
        assert (second.counts["ended"], second.counts["repaired"]) == (1, 1)
        assert (ended.status_class, ended.auto_renew) == ("ended", False)
        assert ended.cancel_reason == "the billing provider does not know this subscription"
        assert third.counts == {"compared": 1, "repaired": 0}
        ((before, after),) = drift()
        assert (before["status_class"], after["status_class"]) == ("live", "ended")

    def test_is_forgotten_if_it_is_found_again(self, reading, stripe, named):
        gone = stripe.create(is_told=False, **named)
        stripe.create(is_told=False, **named)
        compare(reading)
        self.remove(stripe, gone)
        compare(reading)
        stripe.subscriptions[gone.id] = gone
        stripe.in_order.append(gone)

        state = compare(reading)

        assert state.counts == {"compared": 2, "repaired": 0}
        assert stored(bp_subscription_id=gone.id).missing_since is None

    def test_all_of_them_end_nothing(self, reading, stripe, named):
        """The key may be that of another account."""
        gone = stripe.create(is_told=False, **named)
        compare(reading)
        self.remove(stripe, gone)

        compare(reading)
        state = compare(reading)

        assert row(Subscription).status_class == "live"
        assert "another account" in state.error

    def test_on_the_pages_alone_is_read_and_repaired(self, reading, stripe, named):
        hidden = stripe.create(is_told=False, **named)
        compare(reading)
        quietly(stripe, "fail", hidden)
        stripe.in_order.remove(hidden)

        state = compare(reading)

        assert (state.counts["compared"], state.counts["class"]) == (1, 1)
        assert row(Subscription).status_class == "past_due"

    @staticmethod
    def remove(account: Stripe, subscription: Simulation) -> None:
        account.in_order.remove(subscription)
        del account.subscriptions[subscription.id]


class TestInterrupted:
    @pytest.fixture
    def many(self, reading, stripe, named) -> list[Simulation]:
        """Three pages."""
        return [stripe.create(is_told=False, **named) for _ in range(210)]

    def test_by_a_kill_it_continues_at_its_cursor(self, reading, stripe, many):
        assert compare(reading, steps=1).is_running

        state = compare(reading)

        assert state.counts == {"compared": 0, "created": 210, "repaired": 0}
        assert not state.is_running
        pages = [one for one in stripe.api.requests if one.path.startswith("/v1/subscriptions?")]
        assert len(pages) == 3

    def test_between_its_read_and_its_write_nothing_is_lost(self, reading, stripe, many):
        """Another process has taken the same page."""
        working = self.steps(reading)
        next(working)
        compare(reading)
        with suppress(StopIteration):
            while True:
                next(working)

        state = row(BillingComparison)
        assert state.counts == {"compared": 0, "created": 210, "repaired": 0}
        assert len(rows(Subscription)) == 210

    @staticmethod
    def steps(app: Flask) -> Iterator[BillingComparison]:
        with app.app_context():
            with database.platform_transaction():
                reconcile.begin(PROVIDER)
            yield from reconcile.work(PROVIDER, 600)

    def test_by_a_limit_it_pauses(self, reading, stripe, many):
        stripe.api.next_faults = deque([200, 429])
        stripe.api.next_faults.popleft()

        with pytest.raises(ReadFailed) as limited:
            compare(reading)

        assert 0 < limited.value.pause <= 1
        state = row(BillingComparison)
        assert (state.is_running, state.error) == (True, "Stripe limits the rate of requests")
        time.sleep(1)
        assert compare(reading).error == ""

    def test_by_an_outage_it_continues_where_it_was(self, reading, stripe, many):
        compare(reading, steps=2)
        stripe.api.outage = 503
        with pytest.raises(ReadFailed):
            compare(reading)
        assert row(BillingComparison).error != ""
        stripe.api.outage = None

        state = compare(reading)

        assert (state.counts["created"], state.error) == (210, "")

    def test_by_an_outage_while_it_reads_one_by_one_nothing_ends(self, reading, stripe, many):
        compare(reading)
        stripe.in_order.clear()
        compare(reading, steps=1)
        stripe.api.outage = 500

        with pytest.raises(ReadFailed):
            compare(reading)

        assert query("SELECT count(*) FROM subscriptions WHERE missing_since IS NOT NULL") == [(0,)]

    def test_a_cursor_that_the_provider_refuses_begins_again(self, reading, stripe, many):
        compare(reading, steps=1)
        stripe.api.next_faults = deque([400])
        with pytest.raises(ReadFailed):
            compare(reading)

        assert row(BillingComparison).cursor == ""
        assert compare(reading).counts["created"] == 210

    def test_pages_that_shift_meanwhile_leave_nothing_out(self, environment, app, tenant):
        with LemonSqueezy(secret="s").serving() as account, service(environment, account) as other:
            self.fill(account, tenant)
            compare(other, "lemonsqueezy")
            one = account.in_order[8]  # the second of the third page
            quietly(account, "fail", one)
            compare(other, "lemonsqueezy", steps=2)
            for gone in account.in_order[-3:]:
                del account.subscriptions[gone.id]
            del account.in_order[-3:]
            state = compare(other, "lemonsqueezy")

        assert state.counts["class"] == 1
        assert stored(bp_subscription_id=one.id).status_class == "past_due"

    @staticmethod
    def fill(account: LemonSqueezy, tenant: Any) -> None:
        mapped = account.create_customer(is_told=False)
        database.execute(
            "INSERT INTO billing_customers (tenant_id, id, created_at, updated_at, version, provider,"
            " customer_id, is_manual) VALUES (:tenant, :tenant, now(), now(), 1, 'lemonsqueezy',"
            " :customer, true)",
            tenant=tenant.id,
            customer=mapped.id,
        )
        for _ in range(210):
            account.create(customer=mapped, is_told=False)

    def test_each_price_is_read_once(self, environment, app, tenant):
        with LemonSqueezy(secret="s").serving() as account, service(environment, account) as other:
            self.fill(account, tenant)
            compare(other, "lemonsqueezy")

        paths = [one.path for one in account.api.requests]
        assert sum(path.startswith("/v1/prices/") for path in paths) == 1


class TestJobs:
    def test_begin_what_is_due_and_finish_it(self, reading, stripe, named):
        stripe.create(is_told=False, **named)

        with reading.app_context():
            jobs.compare_with_providers()
        work_off(reading)

        state = row(BillingComparison)
        assert not state.is_running
        with reading.app_context():
            jobs.compare_with_providers()
        work_off(reading)
        assert row(BillingComparison).started_at == state.started_at

    def test_continue_what_is_under_way(self, reading, stripe, named, monkeypatch):
        monkeypatch.setattr(jobs, "WORKING_TIME", 0.001)
        for _ in range(150):
            stripe.create(is_told=False, **named)

        for _ in range(3):
            with reading.app_context():
                jobs.compare_with_providers()
            work_off(reading)

        assert row(BillingComparison).counts["created"] == 150
        assert not row(BillingComparison).is_running


class TestPreview:
    def test_says_what_would_change_and_writes_nothing(self, reading, stripe, named):
        known, _same = (stripe.create(is_told=False, **named) for _ in range(2))
        compare(reading)
        quietly(stripe, "fail", known)
        waiting = stripe.create(is_told=False)
        added = stripe.create(is_told=False, **named)
        before = (rows(Subscription), rows(BillingComparison), len(drift()))

        found = preview(reading)

        assert sorted(found) == sorted([
            (known.id, ("class",)), (waiting.id, ("waiting",)), (added.id, ("created",)),
        ])  # fmt: skip
        assert (rows(Subscription), rows(BillingComparison), len(drift())) == before
        assert all_events() == []


class TestApi:
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {platform_token()}"}

    def test_begins_a_comparison_and_shows_the_providers(self, reading, stripe, named):
        stripe.create(is_told=False, **named)
        stripe.create(is_told=False)
        client = reading.test_client()

        begun = client.post("/v1/billing/providers/stripe/reconcile", headers=self.headers())
        again = client.post("/v1/billing/providers/stripe/reconcile", headers=self.headers())
        work_off(reading)
        let_wait(reading)
        (shown,) = client.get("/v1/billing/providers", headers=self.headers()).get_json()["data"]

        assert (begun.status_code, again.status_code) == (202, 202)
        assert begun.get_json()["data"]["is_comparing"]
        assert (shown["provider"], shown["has_receiver"], shown["has_api_key"]) == (
            "stripe", True, True,
        )  # fmt: skip
        assert (shown["created"], shown["unmatched"], shown["waiting"]) == (1, 1, 1)
        assert (shown["is_comparing"], shown["error"]) == (False, "")
        assert shown["finished_at"] > shown["started_at"]
        assert shown["last_event_at"] is not None
        started = "SELECT actor FROM audit_events WHERE action = 'billing_comparison.started'"
        assert len(query(started)) == 1

    @pytest.mark.parametrize(("name", "status"), [("paddle", 409), ("lago", 404)])
    def test_refuses_a_provider_without_a_key(self, reading, name, status):
        path = f"/v1/billing/providers/{name}/reconcile"

        answer = reading.test_client().post(path, headers=self.headers())

        assert answer.status_code == status


class TestHealth:
    def findings(self, app: Flask, name: str) -> Any:
        with app.app_context(), tenancy.platform_transaction():
            return health.CHECKS[name]()

    def test_is_good_without_providers(self, app):
        assert self.findings(app, "drift").level == "ok"

    def test_tells_what_was_repaired(self, reading, stripe, named):
        one = stripe.create(is_told=False, **named)
        compare(reading)
        quietly(stripe, "fail", one)
        compare(reading)

        finding = self.findings(reading, "drift")

        assert finding.level == "hint"
        assert finding.found.startswith("stripe: 1 repaired (class 1) since ")

    def test_tells_of_a_refused_key(self, reading, stripe):
        stripe.api_key = "another"
        with pytest.raises(ReadFailed):
            compare(reading)

        finding = self.findings(reading, "drift")

        assert (finding.level, finding.found) == (
            "fault", "Stripe answered 401: see STRIPE_API_KEY",
        )  # fmt: skip

    def test_tells_of_an_old_comparison(self, reading, stripe):
        compare(reading)
        database.execute("UPDATE billing_comparisons SET finished_at = now() - interval '13 hours'")

        assert "the last comparison with Stripe ended" in self.findings(reading, "drift").found

    def test_tells_of_a_chargebee_receiver_without_a_key(self, environment, app):
        settings = {**environment, "WEBHOOK_SECRETS_CHARGEBEE": "user:password"}
        finding = self.findings(create_app(settings), "drift")

        assert (finding.level, "CHARGEBEE_API_KEY" in finding.found) == ("fault", True)

    def test_is_measured(self, reading, stripe, named):
        one = stripe.create(is_told=False, **named)
        stripe.create(is_told=False)
        compare(reading)
        let_wait(reading)
        quietly(stripe, "fail", one)
        compare(reading)

        page = reading.test_client().get("/metrics").get_data(as_text=True)

        assert 'billing_drift_total{kind="class",provider="stripe"} 1.0' in page
        assert 'billing_waiting_events{provider="stripe"} 1.0' in page
        assert 'billing_last_comparison_seconds{provider="stripe"}' in page
        assert 'billing_last_event_seconds{provider="stripe"}' in page


class TestCommands:
    def run(self, app: Flask, *words: str) -> Any:
        return app.test_cli_runner().invoke(args=["billing", *words])

    def test_reconcile_prints_what_it_did(self, reading, stripe, named):
        stripe.create(is_told=False, **named)

        result = self.run(reading, "reconcile", "stripe", "--json")

        assert json.loads(result.stdout) == {"compared": 0, "created": 1, "repaired": 0}

    def test_reconcile_waits_as_long_as_the_provider_asks(self, reading, stripe, named):
        stripe.create(is_told=False, **named)
        stripe.api.next_faults = deque([429])

        result = self.run(reading, "reconcile", "stripe", "--json")

        assert json.loads(result.stdout)["created"] == 1

    def test_reconcile_can_only_look(self, reading, stripe, tenant, named):
        one = stripe.create(is_told=False, **named)

        result = self.run(reading, "reconcile", "stripe", "--dry-run", "--json")

        assert json.loads(result.stdout) == [
            {"subscription_id": one.id, "tenant_id": str(tenant.id), "kinds": "created"}
        ]
        assert rows(Subscription) == []

    def test_reconcile_refuses_a_provider_without_a_key(self, reading):
        result = self.run(reading, "reconcile", "polar")

        assert (result.exit_code, result.stderr) == (1, "Error: POLAR_API_KEY is not set.\n")

    def test_reconcile_tells_of_a_fault(self, reading, stripe):
        stripe.api.outage = 503

        result = self.run(reading, "reconcile", "stripe")

        assert (result.exit_code, "Stripe answered 503" in result.stderr) == (1, True)

    def test_connect_tells_what_does_not_work(self, reading, stripe):
        stripe.api_key = "another"

        result = self.run(reading, "connect", "stripe", "--url", "http://127.0.0.1:1")

        assert result.exit_code == 1
        assert "API key: Stripe answered 401: see STRIPE_API_KEY." in result.output
        assert "no answer" in result.output

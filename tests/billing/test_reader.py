"""The reader: it reads what events are about, and no provider, fault or kill harms another event."""

import time
from collections import deque
from collections.abc import Iterator
from datetime import timedelta

import pytest
from flask import Flask

from app.billing import api
from app.billing.providers import PROVIDERS
from app.core.clock import utcnow
from app.core.db.transactions import transaction
from app.core.jobs.queues import Queue, connection, queue_named
from app.inbox import processing
from app.subscriptions.models import Subscription
from app.tenants.models import Tenant
from tests.billing.reading import post, post_all, reader_of, service, wait_for
from tests.billing.simulated.base import Line
from tests.billing.simulated.lives import PAIRS
from tests.billing.simulated.paddle import Paddle
from tests.billing.simulated.stripe import Stripe
from tests.billing.support import SECRET
from tests.database import execute, row, rows
from tests.inbox.sending import event_row, work_off
from tests.inbox.test_processing import change_event
from tests.running.serving import wait_until


@pytest.fixture
def paddle(app: Flask) -> Iterator[Paddle]:
    with Paddle(secret=SECRET).serving() as account:
        yield account


@pytest.fixture
def quick(monkeypatch) -> None:
    """Failed attempts are repeated soon."""
    monkeypatch.setattr(processing, "RETRY_DELAYS", (0.1,) * 4)


def subscribe(account: Stripe | Paddle, tenant: Tenant, *lines: Line) -> None:
    """A subscription of the tenant, which waits to be told."""
    account.create(*lines, tenant=str(tenant.id), customer=account.create_customer(is_told=False))


class TestWithAKey:
    def test_the_subscription_is_as_the_provider_shows_it_and_not_as_the_event(
        self, reading, stripe, tenant
    ):
        subscribe(stripe, tenant)
        (created,) = stripe.take()
        stripe.apply("fail", stripe.in_order[0], is_told=False)
        event_id = post(reading, stripe, created)

        with reader_of(reading):
            event = wait_for(event_id)

        found = (event.status, event.detail, event.attempts)
        assert found == ("succeeded", "read from Stripe", 1)
        mirrored = row(Subscription)
        assert (mirrored.tenant_id, mirrored.bp_status) == (tenant.id, "past_due")
        assert (mirrored.status_class, mirrored.bp_provider) == ("past_due", "stripe")

    def test_the_worker_leaves_the_events_and_is_not_told_of_them(self, reading, stripe, tenant):
        subscribe(stripe, tenant)
        (event_id,) = post_all(reading, stripe)

        assert work_off(reading) == []
        with reading.app_context(), transaction():
            assert queue_named(Queue.WEBHOOKS, connection()).count == 0
            change_event(event_id, next_attempt_at=utcnow() - timedelta(hours=1))
            assert processing.sweep() == 0
        assert event_row(event_id).status == "pending"

    def test_an_event_of_the_other_mode_is_ignored_and_nothing_is_read(
        self, reading, stripe, tenant
    ):
        stripe.is_live = False
        subscribe(stripe, tenant)
        (event_id,) = post_all(reading, stripe)

        with reader_of(reading):
            event = wait_for(event_id)

        assert (event.status, event.detail) == ("ignored", "test mode")
        assert stripe.api.requests == []

    def test_a_customer_is_read_where_its_metadata_decides_the_tenant(
        self, reading, stripe, tenant
    ):
        customer = stripe.create_customer(tenant=tenant.slug, is_told=False)
        stripe.create(customer=customer)
        (event_id,) = post_all(reading, stripe)

        with reader_of(reading):
            assert wait_for(event_id).status == "succeeded"

        assert row(Subscription).tenant_id == tenant.id

    def test_an_event_without_a_tenant_waits_until_its_customer_names_one(
        self, reading, stripe, tenant
    ):
        customer = stripe.create_customer(is_told=False)
        stripe.create(customer=customer)
        (event_id,) = post_all(reading, stripe)

        with reader_of(reading):
            waiting = wait_for(event_id, status="waiting_tenant")
            found = (waiting.status, waiting.processed_at, waiting.body is None)
            stripe.change_customer(customer, tenant=tenant.slug)
            post_all(reading, stripe)
            applied = wait_for(event_id, status="succeeded")

        assert found == ("waiting_tenant", None, False)
        assert applied.status == "succeeded"
        assert row(Subscription).tenant_id == tenant.id

    def test_events_of_a_subscription_that_ends_without_a_tenant_wait_no_more(
        self, reading, stripe
    ):
        """Such as that of a deleted tenant."""
        subscription = stripe.create(tenant="deleted", customer=stripe.create_customer())
        (*_, created) = post_all(reading, stripe)

        with reader_of(reading):
            wait_for(created, status="waiting_tenant")
            stripe.apply("end", subscription)
            ended = [wait_for(one) for one in post_all(reading, stripe)]
            earlier = wait_for(created, status="ignored")

        assert {one.detail for one in (*ended, earlier)} == {"it has ended, and no tenant is known"}
        assert rows(Subscription) == []


class TestEveryProvider:
    @pytest.mark.parametrize("name", PAIRS)
    def test_is_read_and_applied_until_a_subscription_ends(self, environment, tenant, name):
        secret = {"chargebee": "hook:a:password"}.get(name, SECRET)
        with (
            PAIRS[name][0](secret=secret).serving() as account,
            service(environment, account) as app,
            reader_of(app),
        ):
            subscription = account.create(tenant=str(tenant.id))
            created = [wait_for(one) for one in post_all(app, account)]
            before = row(Subscription)
            account.apply("end", subscription)
            ended = [wait_for(one) for one in post_all(app, account)]

        assert {event.status for event in created} <= {"succeeded", "ignored"}
        assert {event.status for event in ended} <= {"succeeded", "ignored"}
        assert (before.tenant_id, before.status_class) == (tenant.id, "live")
        assert (before.bp_provider, before.bp_subscription_id) == (name, subscription.id)
        assert row(Subscription).status_class == "ended"


class TestRate:
    def test_at_most_five_are_read_at_a_time(self, reading, stripe, tenant):
        stripe.api.delay = 0.5
        for _ in range(10):
            subscribe(stripe, tenant)
        ids = post_all(reading, stripe)

        with reader_of(reading):
            assert {wait_for(one).status for one in ids} == {"succeeded"}

        assert stripe.api.most_in_flight == 5

    def test_no_more_are_read_than_the_rate_allows(self, reading, stripe, tenant):
        for _ in range(25):
            subscribe(stripe, tenant)
        ids = post_all(reading, stripe)

        with reader_of(reading):
            assert {wait_for(one).status for one in ids} == {"succeeded"}

        first, *_, last = [one.at for one in stripe.api.requests]
        # the first may have arrived late
        assert last - first >= 24 / PROVIDERS["stripe"].reads_per_second - 0.2

    def test_a_limit_pauses_the_provider_and_is_no_attempt(self, reading, stripe, tenant):
        stripe.api.next_faults = deque([429])
        stripe.api.retry_after = "2"
        subscribe(stripe, tenant)
        (event_id,) = post_all(reading, stripe)

        with reader_of(reading):
            limited = wait_for(event_id, detail="ReadFailed: Stripe limits the rate of requests")
            event = wait_for(event_id)

        assert (limited.status, limited.attempts) == ("pending", 0)
        assert (event.status, event.attempts) == ("succeeded", 1)
        first, second = stripe.api.requests
        assert second.at - first.at >= 2

    @pytest.mark.parametrize(
        ("header", "seconds"), [(None, api.PAUSE), ("soon", api.PAUSE), ("999999", 300.0)]
    )
    def test_the_pause_has_a_default_and_a_bound(self, reading, stripe, header, seconds):
        stripe.api.next_faults = deque([429])
        stripe.api.retry_after = header

        with reading.app_context(), pytest.raises(api.ReadFailed) as refused:
            api.read_subscription(PROVIDERS["stripe"], "sub_1")

        assert refused.value.status == 429
        assert seconds - 1 < refused.value.pause <= seconds
        assert seconds - 5 < api.pause_of(PROVIDERS["stripe"]) <= seconds
        with reading.app_context(), pytest.raises(api.ReadFailed):
            api.read_subscription(PROVIDERS["stripe"], "sub_1")
        assert len(stripe.api.requests) == 1


class TestFaults:
    def test_rubbish_errors_and_broken_connections_are_attempts(
        self, reading, stripe, tenant, quick
    ):
        stripe.api.next_faults = deque(["rubbish", 500, "reset"])
        subscribe(stripe, tenant)
        (event_id,) = post_all(reading, stripe)

        with reader_of(reading):
            event = wait_for(event_id)

        assert (event.status, event.attempts) == ("succeeded", 4)

    @pytest.mark.parametrize(
        ("fault", "said"),
        [
            (503, "ReadFailed: Stripe answered 503"),
            (401, "ReadFailed: Stripe answered 401: see STRIPE_API_KEY"),
            (404, "ReadFailed: Stripe answered 404: see STRIPE_API_KEY"),
            (
                "rubbish",
                "ReadFailed: Stripe's answer cannot be read: the body is not JSON in UTF-8",
            ),
        ],
    )
    def test_that_last_let_the_event_fail_until_it_is_replayed(
        self, reading, stripe, tenant, quick, fault, said
    ):
        stripe.api.outage = fault
        subscribe(stripe, tenant)
        (event_id,) = post_all(reading, stripe)

        with reader_of(reading):
            event = wait_for(event_id)

        assert (event.status, event.attempts, event.detail) == ("failed", 5, said)
        assert rows(Subscription) == []

    def test_an_answer_about_another_subscription_is_no_answer(self, reading, stripe, tenant):
        subscribe(stripe, tenant)
        subscribe(stripe, tenant)
        first, second = stripe.in_order
        stripe.subscriptions[first.id] = second
        event_id, _ = post_all(reading, stripe)

        with reader_of(reading):
            event = wait_for(event_id, attempts=1)

        assert event.detail == "ReadFailed: Stripe answered another subscription"

    def test_of_our_own_do_not_end_the_reader(self, reading, stripe, tenant, quick, monkeypatch):
        read, faults = api.read_subscription, deque([KeyError("ours")])

        def fail_once(*given: object) -> object:
            if faults:
                raise faults.popleft()
            return read(*given)

        monkeypatch.setattr(api, "read_subscription", fail_once)
        subscribe(stripe, tenant)
        (event_id,) = post_all(reading, stripe)

        with reader_of(reading):
            event = wait_for(event_id)

        assert (event.status, event.attempts) == ("succeeded", 2)

    def test_a_silent_provider_delays_nobody_else(
        self, environment, stripe, paddle, sender, tenant, monkeypatch
    ):
        monkeypatch.setattr(api, "TIMEOUT", 8.0)
        with service(environment, stripe, paddle) as app:
            stripe.api.outage = "silence"
            for _ in range(10):
                subscribe(stripe, tenant)
            silent = post_all(app, stripe)
            with reader_of(app):
                wait_until(lambda: len(stripe.api.requests) == 5, seconds=10)
                subscribe(paddle, tenant)
                others = post_all(app, paddle)
                identity = sender.post(
                    "standard_webhooks",
                    {
                        "type": "organization.created",
                        "timestamp": "2026-01-05T09:00:00Z",
                        "data": {"id": "org_1", "name": "Acme"},
                    },
                ).get_json()["event_id"]
                work_off(app)
                applied = {wait_for(one).status for one in (*others, identity)}
                waiting = {event_row(one).attempts for one in silent}
                tried = wait_for(silent[0], attempts=1, seconds=15)
                stripe.end_silence()

        assert applied == {"succeeded"}
        assert waiting == {0}
        assert (tried.attempts, tried.status) == (1, "pending")
        assert tried.detail.startswith("ReadFailed: Stripe: ")

    def test_a_backlog_of_a_provider_does_not_delay_the_worker(self, reading, sender):
        execute(
            "INSERT INTO webhook_events (id, created_at, updated_at, version, source, external_id,"
            " event_type, status, detail, attempts, replays, applied_parts, next_attempt_at,"
            " headers, body, digest, request_id)"
            " SELECT gen_random_uuid(), now(), now(), 1, 'stripe', n::text, '', 'pending', '', 0, 0,"
            " 0, now() - interval '1 hour', '{}', '{}', '', '' FROM generate_series(1, 20000) n"
        )
        for number in range(20):
            body = {"type": "x", "data": {"id": str(number)}}
            assert sender.post("standard_webhooks", body).status_code == 200
        started = time.monotonic()

        applied = work_off(reading)

        assert len(applied) == 20
        assert time.monotonic() - started < 15

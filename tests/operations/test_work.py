"""GET /v1/operations/work: numbers of what wants attention, and the lists of them."""

from datetime import timedelta

import pytest

from app.core.clock import utcnow
from app.identity_sync import health as identity_sync
from app.identity_sync.models import IdentityObject
from app.inbox.models import WebhookEvent
from app.operations import attention
from app.plans.models import PlanAssignment
from app.usage.models import UsageCounter
from tests import database
from tests.factories import (
    create_domain,
    create_join_request,
    create_limits,
    create_log_stream,
    create_member,
    create_preset,
    create_sso_connection,
    create_subscription,
    create_tenant,
    create_webhook_endpoint,
    limit_flag,
    platform_token,
    save,
)

WORK = "/v1/operations/work"


@pytest.fixture
def work(api):
    """The numbers by their names, each with the rows of its list."""

    def ask():
        answer = api.get(WORK, token=platform_token())
        assert answer.status_code == 200, answer.text
        found = {one["name"]: one for one in answer.get_json()["data"]}
        for one in found.values():
            listed = api.get(one["list"], token=platform_token())
            assert listed.status_code == 200, listed.text
            one["rows"] = listed.get_json()["data"]
        return found

    return ask


@pytest.fixture
def counted(work):
    """The number of this name, which the length of its list equals."""

    def ask(name):
        one = work()[name]
        assert one["count"] == len(one["rows"])
        assert one["is_more"] is False
        return one

    return ask


def end_in(tenant, **span):
    until = utcnow() + timedelta(**span)
    place = {"tenant_id": tenant.id, "until": until, "plan_name": "pro", "next_plan_name": "free"}
    save(PlanAssignment, **place, reason="", created_by="cli:test")
    return until


def use(tenant, feature, used, **values):
    start = utcnow() - timedelta(days=1)
    values = {"period_start": start, "announced": 100, **values}
    save(UsageCounter, tenant_id=tenant.id, feature=feature, used=used, **values)


class TestWork:
    def test_has_every_number_and_nothing_to_do(self, app, work):
        found = {name: one["count"] for name, one in work().items()}

        assert found.pop("findings") is not None
        assert found == {
            "past_due": 0,
            "trials_ending": 0,
            "over_limit": 0,
            "failed_webhooks": 0,
            "waiting_people": 0,
            "waiting_billing": 0,
            "failing_endpoints": 0,
            "failed_deliveries": 0,
            "failing_log_streams": 0,
            "invalid_log_streams": 0,
            "join_requests": 0,
            "lapsed_domains": 0,
            "ending_certificates": 0,
        }

    def test_is_for_superadmins(self, api, app):
        _, _, owner = create_member(create_tenant(), role="owner")

        assert api.get(WORK, token=owner).status_code == 403

    def test_counts_trials_that_end_within_a_week(self, counted):
        soon, later, over = (create_tenant() for _ in range(3))
        until = end_in(soon, days=6)
        end_in(later, days=8)
        end_in(over, seconds=-5)

        (row,) = counted("trials_ending")["rows"]

        assert row["id"] == str(soon.id)
        assert row["assigned_until"][:19] == until.isoformat()[:19]

    def test_counts_overdue_subscriptions(self, counted):
        due = create_subscription(create_tenant(), bp_status="past_due")
        create_subscription(create_tenant())

        assert [row["id"] for row in counted("past_due")["rows"]] == [str(due.id)]

    def test_counts_tenants_that_have_used_up_a_limit(self, api, counted):
        create_limits("free", limit_flag("calls", 10), limit_flag("seats", 1))
        full, raised, past, nearly, seats = (create_tenant() for _ in range(5))
        use(full, "calls", 10, period_start="1970-01-01T00:00:00Z")
        use(raised, "calls", 9, period_start="1970-01-01T00:00:00Z")
        use(past, "calls", 12, period_end=utcnow() - timedelta(hours=1))
        use(nearly, "calls", 9, period_start="1970-01-01T00:00:00Z", announced=80)
        use(seats, "seats", 1, period_start="1970-01-01T00:00:00Z")

        (row,) = counted("over_limit")["rows"]

        assert row["id"] == str(full.id)
        assert row["limits"][0]["used"] == 10
        others = api.get("/v1/tenants?is_at_limit=false", token=platform_token())
        assert len(others.get_json()["data"]) == 4

    def test_counts_endpoints_that_fail(self, api, counted):
        failing, healthy, paused = (create_webhook_endpoint(create_tenant().id) for _ in range(3))
        database.execute(
            "UPDATE webhook_endpoint_states SET failing_since = '2026-01-05 09:45Z'"
            " WHERE endpoint_id <> :id",
            id=str(healthy.id),
        )
        database.execute(
            "UPDATE webhook_endpoints SET is_active = false WHERE id = :id", id=str(paused.id)
        )

        (row,) = counted("failing_endpoints")["rows"]

        assert (row["id"], row["failing_since"]) == (str(failing.id), "2026-01-05T09:45:00Z")
        others = api.get("/v1/webhook-endpoints?is_failing=false", token=platform_token())
        assert {one["id"] for one in others.get_json()["data"]} == {
            str(healthy.id),
            str(paused.id),
        }

    def test_counts_failed_deliveries_of_a_week(self, api, counted):
        old, new, pending = (create_webhook_endpoint(create_tenant().id) for _ in range(3))
        change = "UPDATE webhook_deliveries SET {} WHERE endpoint_id = :id"
        early = change.format("created_at = now() - interval '8 days'")
        database.execute(early, id=str(old.id))
        database.execute(change.format("status = 'pending'"), id=str(pending.id))

        (row,) = counted("failed_deliveries")["rows"]

        assert row["endpoint_id"] == str(new.id)
        path = "/v1/webhook-deliveries/failed?include=tenant"
        every = api.get(path, token=platform_token())
        assert [one["tenant"]["id"] for one in every.get_json()["data"]] == [
            str(old.tenant_id),
            str(new.tenant_id),
        ]

    def test_counts_log_streams_that_fail_or_need_a_correction(self, counted):
        streams = {
            state: create_log_stream(create_tenant().id, state=state)
            for state in ("active", "paused", "error", "invalid")
        }

        for name, state in (("failing_log_streams", "error"), ("invalid_log_streams", "invalid")):
            assert [row["id"] for row in counted(name)["rows"]] == [str(streams[state].id)]

    def test_counts_received_events_that_failed(self, counted):
        for number, status in enumerate(("failed", "processed")):
            save(
                WebhookEvent,
                source="workos",
                external_id=f"evt_{number}",
                event_type="user.created",
                status=status,
                headers={},
                body=b"{}",
                digest="",
                request_id="",
            )

        assert len(counted("failed_webhooks")["rows"]) == 1

    def test_counts_people_who_wait(self, counted):
        for number, is_waiting in enumerate((True, False)):
            save(
                IdentityObject,
                source="workos",
                kind="user",
                object_id=f"user_{number}",
                is_deleted=False,
                is_waiting=is_waiting,
                state={},
            )

        assert len(counted("waiting_people")["rows"]) == 1

    def test_counts_people_who_want_to_join(self, counted):
        waiting = create_join_request(create_tenant())
        create_join_request(create_tenant(), state="declined")

        assert [row["id"] for row in counted("join_requests")["rows"]] == [str(waiting.id)]

    def test_counts_domains_that_lapsed(self, counted):
        lapsed = create_domain(create_tenant(), state="lapsed")
        create_domain(create_tenant(), state="failed")

        assert [row["id"] for row in counted("lapsed_domains")["rows"]] == [str(lapsed.id)]

    def test_counts_certificates_that_end_within_a_month(self, counted):
        tenant = create_tenant()
        for state, days in (("active", 29), ("active", 31), ("inactive", 29)):
            ends = utcnow() + timedelta(days=days)
            create_sso_connection(tenant.id, name=str(days), state=state, certificate_ends_at=ends)

        (row,) = counted("ending_certificates")["rows"]

        assert (row["name"], row["state"]) == ("29", "active")

    def test_counts_the_faults_of_the_installation(self, work):
        create_preset("free", beta=True)
        end_in(create_tenant(), hours=-1)

        findings = work()["findings"]

        assert findings["count"] == sum(not row["ok"] for row in findings["rows"]) >= 1
        assert "trials" in {row["check"] for row in findings["rows"] if not row["ok"]}

    def test_counts_a_thousand_and_says_that_there_are_more(self, work):
        endpoint = create_webhook_endpoint(create_tenant().id)
        database.execute(
            "INSERT INTO webhook_deliveries (tenant_id, id, created_at, endpoint_id, event_id, type,"
            " status, attempts) SELECT tenant_id, gen_random_uuid(), created_at, endpoint_id,"
            " gen_random_uuid(), type, status, attempts FROM webhook_deliveries,"
            " generate_series(1, 1000) WHERE endpoint_id = :id",
            id=str(endpoint.id),
        )

        found = work()["failed_deliveries"]

        assert (found["count"], found["is_more"]) == (1000, True)

    def test_leaves_out_what_takes_too_long(self, api, app, monkeypatch):
        slow = ("SELECT pg_sleep(5)", "/v1/identity/waiting")
        monkeypatch.setitem(identity_sync.WORK, "waiting_people", slow)
        monkeypatch.setattr(attention, "QUICKLY", "1s")

        answer = api.get(WORK, token=platform_token())

        found = {one["name"]: one["count"] for one in answer.get_json()["data"]}
        assert found["waiting_people"] is None
        assert found["failed_deliveries"] == 0

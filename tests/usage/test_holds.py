"""/v1/usage/holds: answers and refusals. test_model.py has what is counted and held when."""

import json
from datetime import timedelta
from uuid import uuid4

import pytest
from prometheus_client import REGISTRY

from app.core.clock import rfc3339
from app.usage.models import UsageCounter, UsageHold
from tests import database
from tests.concurrency import at_once
from tests.factories import (
    create_limits,
    limit_flag,
    platform_token,
)
from tests.messages import sent_messages
from tests.usage.days import pass_days

HOLDS = "/v1/usage/holds"


@pytest.fixture
def hold(api, key):
    """Hold with the tenant's key."""
    return lambda feature="calls", amount=4, **more: api.post(
        HOLDS, token=key, json={"feature": feature, "amount": amount, **more}
    )


@pytest.fixture
def made(hold):
    """Hold, and answer the path of the hold."""
    return lambda *args, **more: f"{HOLDS}/{hold(*args, **more).json['data']['id']}"


@pytest.fixture
def settle(api, key):
    return lambda path, amount: api.post(f"{path}/settle", token=key, json={"amount": amount})


@pytest.fixture
def consume(api, key):
    return lambda amount, feature="calls": api.post(
        "/v1/usage/consume", token=key, json={"feature": feature, "amount": amount}
    )


def expire(hours=0):
    """Let all holds have expired some hours ago, unswept."""
    database.execute(
        "UPDATE usage_holds SET expires_at = now() - :hours * interval '1 hour'", hours=hours
    )


def counter(feature="calls"):
    row = database.row(UsageCounter, feature=feature)
    return row.used, row.held


def faults(answer):
    assert answer.status_code == 422, answer.text
    return [(error["type"], error["loc"], error["input"]) for error in answer.json["detail"]]


def refusals(answer):
    return answer.status_code, answer.json.get("code")


class TestCreate:
    def test_takes_what_is_free_from_everybody_else(self, hold, consume, api, key):
        answer = hold("calls", 4, reference="job-7")

        data = answer.json["data"]
        moments = {name: data[name] for name in ("id", "created_at", "expires_at")}
        assert answer.status_code == 201
        assert answer.headers["Location"] == f"{HOLDS}/{data['id']}"
        assert data == moments | {
            "feature": "calls",
            "kind": "hold",
            "amount": 4,
            "state": "open",
            "counted": 0,
            "over_by": 0,
            "is_late": False,
            "reference": "job-7",
            "ended_at": None,
            "remaining": 6,
        }
        row = database.row(UsageHold)
        assert row.expires_at - row.created_at == timedelta(seconds=300)
        assert consume(7).json["data"]["remaining"] == 6
        check = {"feature": "calls", "amount": 7}
        checked = api.post("/v1/usage/check", token=key, json=check).json["data"]
        assert (checked["allowed"], checked["used"], checked["remaining"]) == (False, 0, 6)
        listed = api.get("/v1/usage?feature=calls", token=key).json["data"][0]
        assert (listed["used"], listed["remaining"]) == (0, 6)
        assert consume(6).status_code == 200

    def test_of_more_than_is_free_is_refused_and_holds_nothing(self, hold, consume):
        consume(5)
        hold("calls", 3)

        answer = hold("calls", 3)

        data = answer.json["data"]
        assert refusals(answer) == (409, "limit_reached")
        assert data | {"resets_at": None} == {
            "allowed": False,
            "feature": "calls",
            "limit": 10,
            "used": 5,
            "remaining": 2,
            "resets_at": None,
            "policy": "hard",
        }
        assert counter() == (5, 3)

    @pytest.mark.parametrize(("feature", "remaining"), [("storage", 0), ("unlimited", None)])
    def test_shows_what_remains_of_soft_and_unlimited_limits(self, hold, feature, remaining):
        assert hold(feature, 10).json["data"]["remaining"] == remaining

    @pytest.mark.parametrize("feature", ["nope", "seats", "x" * 5000])
    def test_refuses_an_unknown_feature_and_seats(self, hold, feature):
        assert faults(hold(feature)) == [("value_error", ["body", "feature"], feature)]

    @pytest.mark.parametrize("amount", [0, -1, 1.5, "many", None, 10**15 + 1, 2**70])
    def test_refuses_an_amount_that_is_none(self, hold, amount):
        assert [fault[1] for fault in faults(hold("unlimited", amount))] == [["body", "amount"]]

    @pytest.mark.parametrize(
        "wrong",
        [
            {"ttl_seconds": 0},
            {"ttl_seconds": 86_401},
            {"reference": ""},
            {"reference": "a\0"},
            {"idempotency_key": "x" * 256},
            {"kind": "lease"},
        ],
    )
    def test_refuses_other_wrong_values(self, hold, wrong):
        assert [fault[1] for fault in faults(hold(**wrong))] == [["body", *wrong]]

    def test_of_a_suspended_tenant_is_refused(self, api, tenant):
        database.execute("UPDATE tenants SET is_active = false")

        body = {"feature": "calls", "amount": 1, "tenant_id": tenant.slug}
        answer = api.post(HOLDS, token=platform_token(), json=body)

        assert refusals(answer) == (403, "tenant_suspended")

    def test_needs_two_round_trips_and_a_commit(self, hold):
        hold()

        with sent_messages() as messages:
            hold()

        assert messages == ["auth.authenticate_key", "usage_holds.hold", "COMMIT"]


class TestIdempotencyKey:
    def test_finds_the_hold_where_nothing_is_free(self, hold, consume):
        first = hold("calls", 6, idempotency_key="a")
        consume(4)

        assert hold("calls", 6, idempotency_key="a").json == first.json
        assert refusals(hold("calls", 6, idempotency_key="b")) == (409, "limit_reached")

    def test_finds_the_hold_as_it_is_now(self, hold, made, settle):
        settle(made("calls", 6, idempotency_key="a"), 2)

        data = hold("calls", 6, idempotency_key="a").json["data"]

        assert (data["state"], data["counted"]) == ("settled", 2)
        assert counter() == (2, 0)

    def test_with_another_amount_is_refused(self, hold):
        hold("calls", 1, idempotency_key="a")

        answer = hold("calls", 2, idempotency_key="a")

        assert faults(answer) == [("idempotency_key_reused", ["body", "idempotency_key"], "a")]

    def test_of_another_feature_is_another_key(self, hold):
        answers = [hold(each, 1, idempotency_key="a") for each in ("calls", "projects")]

        assert answers[0].json["data"]["id"] != answers[1].json["data"]["id"]

    def test_makes_another_hold_after_a_day(self, hold):
        first = hold("calls", 1, idempotency_key="a")
        database.execute("UPDATE usage_holds SET created_at = now() - interval '24 hours'")

        second = hold("calls", 2, idempotency_key="a")

        assert second.json["data"]["id"] != first.json["data"]["id"]
        assert counter() == (0, 3)

    def test_makes_one_hold_over_a_periods_turn(self, hold):
        first = hold("unlimited", 1, idempotency_key="a")
        pass_days()

        again = hold("unlimited", 1, idempotency_key="a")

        assert again.json == first.json
        assert [row.held for row in database.rows(UsageCounter)] == [1, 0]

    def test_finds_a_hold_of_a_past_period_that_has_expired(self, hold):
        hold("unlimited", 1, idempotency_key="a")
        expire()
        pass_days()

        data = hold("unlimited", 1, idempotency_key="a").json["data"]

        assert (data["state"], data["ended_at"]) == ("expired", data["expires_at"])

    def test_sent_at_once_makes_one_hold(self, hold):
        answers = at_once([lambda: hold("calls", 2, idempotency_key="a")] * 8)

        assert len({answer.json["data"]["id"] for answer in answers}) == 1
        assert counter() == (0, 2)


class TestSettle:
    def test_of_more_than_fits_counts_what_was_held_and_tells_it(self, made, settle, api, key):
        name, labels = "limits_crossed_total", {"event": "limit.overrun"}
        before = REGISTRY.get_sample_value(name, labels) or 0
        path = made("calls", 4)

        answers = [settle(path, 12) for _ in range(2)]

        assert refusals(answers[0]) == (409, "limit_reached")
        assert answers[0].json == answers[1].json
        shown = answers[0].json["data"]
        found = api.get(path, token=key).json["data"]
        assert shown == found
        assert (found["state"], found["counted"], found["over_by"]) == ("settled", 4, 8)
        assert counter() == (4, 0)
        (event,) = database.query("SELECT * FROM audit_events WHERE action = 'limit.overrun'")
        period_end = database.row(UsageCounter).period_end
        assert (event.target_id, event.after) == (
            "calls",
            {
                "hold_id": found["id"],
                "over_by": 8,
                "used": 4,
                "limit": 10,
                "resets_at": rfc3339(period_end),
            },
        )
        assert REGISTRY.get_sample_value(name, labels) == before + 1

    def test_counts_what_is_held_although_the_plan_lacks_the_limit(self, made, settle):
        first, second = made("calls", 4), made("calls", 4)
        create_limits("other", limit_flag("projects", 1))
        database.execute("UPDATE tenants SET plan_name = 'other'")

        assert settle(first, 4).json["data"]["counted"] == 4
        assert refusals(settle(second, 5)) == (409, "limit_reached")
        assert counter() == (8, 0)

    def test_of_a_limit_that_the_plan_lacks_makes_no_threshold_new(self, api, key, made, consume):
        path = made("storage", 1)
        consume(5, "storage")
        create_limits("other", limit_flag("projects", 1))
        database.execute("UPDATE tenants SET plan_name = 'other'")
        api.delete(path, token=key)
        database.execute("UPDATE tenants SET plan_name = 'free'")

        consume(1, "storage")

        found = database.query("SELECT action FROM audit_events WHERE target_type = 'limit'")
        assert sorted(row.action for row in found) == ["limit.reached", "limit.warning"]

    def test_records_no_threshold_of_a_period_that_is_over(self, made, settle):
        path = made("calls", 9)
        pass_days(32)

        assert settle(path, 9).json["data"]["counted"] == 9

        assert database.query("SELECT FROM audit_events WHERE target_type = 'limit'") == []

    @pytest.mark.parametrize("amount", [-1, 0.5, None, 10**15 + 1])
    def test_refuses_an_amount_that_is_none(self, made, settle, amount):
        assert [one[1] for one in faults(settle(made(), amount))] == [["body", "amount"]]

    def test_refuses_what_would_be_too_large(self, made, settle):
        path = made("storage", 4)
        database.execute("UPDATE usage_counters SET used = 1000000000000000000 - 4")

        assert faults(settle(path, 5)) == [("value_error", ["body", "amount"], 5)]

    def test_of_what_is_held_is_never_too_large(self, made, settle, api, key):
        settled, released = made("unlimited", 4), made("unlimited", 4)
        database.execute("UPDATE usage_counters SET used = 1000000000000000000")

        assert settle(settled, 4).json["data"]["counted"] == 4
        assert api.delete(released, token=key).status_code == 204
        assert counter("unlimited") == (10**18 + 4, 0)

    def test_of_a_suspended_tenant_is_counted(self, api, made):
        path = made("calls", 4)
        database.execute("UPDATE tenants SET is_active = false")

        answer = api.post(f"{path}/settle", token=platform_token(), json={"amount": 2})

        assert answer.json["data"]["counted"] == 2

    def test_needs_two_round_trips_and_a_commit(self, made, settle):
        settle(made(), 1)
        path = made()

        with sent_messages() as messages:
            settle(path, 1)

        assert messages == ["auth.authenticate_key", "usage_holds.settle", "COMMIT"]


class TestExpiry:
    def test_frees_the_amount_before_anything_sweeps(self, made, hold, consume, api, key):
        path = made("calls", 8)
        expire()

        shown = api.get(path, token=key).json["data"]
        assert (shown["state"], shown["ended_at"]) == ("expired", shown["expires_at"])
        assert counter() == (0, 8)
        listed = api.get("/v1/usage?feature=calls", token=key).json["data"][0]
        assert listed["remaining"] == 10
        assert consume(10).status_code == 200
        assert counter() == (10, 0)
        assert database.row(UsageHold).state == "expired"

    def test_a_late_settlement_counts_what_fits(self, made, settle, consume):
        path = made("calls", 8)
        expire(23)
        consume(7)

        answers = [settle(path, 5) for _ in range(2)]

        data = answers[0].json["data"]
        assert (answers[0].status_code, answers[0].json) == (200, answers[1].json)
        assert (data["state"], data["is_late"]) == ("settled", True)
        assert (data["counted"], data["over_by"], data["remaining"]) == (3, 2, 0)
        assert counter() == (10, 0)
        events = database.query("SELECT after FROM audit_events WHERE action = 'limit.overrun'")
        assert [event.after["over_by"] for event in events] == [2]


class TestExtend:
    def test_lets_an_open_hold_expire_later(self, api, key, made):
        path = made("calls", 4)

        answer = api.post(f"{path}/extend", token=key, json={"ttl_seconds": 86_400})

        row = database.row(UsageHold)
        assert answer.status_code == 200
        assert answer.json["data"]["expires_at"] == rfc3339(row.expires_at)
        assert row.expires_at - row.created_at > timedelta(seconds=86_399)

    @pytest.mark.parametrize("seconds", [0, 86_401, "soon", None])
    def test_refuses_other_times(self, api, key, made, seconds):
        answer = api.post(f"{made()}/extend", token=key, json={"ttl_seconds": seconds})

        assert [fault[1] for fault in faults(answer)] == [["body", "ttl_seconds"]]


class TestRelease:
    def test_frees_the_amount_again_and_again(self, api, key, made):
        path = made("calls", 4)

        answers = [api.delete(path, token=key) for _ in range(2)]

        assert [answer.status_code for answer in answers] == [204, 204]
        assert database.row(UsageHold).state == "released"
        assert counter() == (0, 0)


class TestList:
    def test_filters_by_feature_and_state(self, api, key, made, settle):
        made("projects", 1)
        expire()
        made("calls", 1)
        settle(made("calls", 2), 2)
        api.delete(made("calls", 3), token=key)

        def amounts(query):
            return [row["amount"] for row in api.get(f"{HOLDS}?{query}", token=key).json["data"]]

        assert amounts("feature=calls") == [3, 2, 1]
        states = ("open", "settled", "released", "expired")
        assert [amounts(f"state={state}") for state in states] == [[1], [2], [3], [1]]
        assert amounts("state=open&feature=projects") == []
        assert api.get(f"{HOLDS}?state=gone", token=key).status_code == 422


class TestWhoMay:
    def test_the_platform_settles_without_naming_the_tenant(self, api, tenant):
        token = platform_token()
        body = {"feature": "calls", "amount": 4, "tenant_id": tenant.slug}
        path = f"{HOLDS}/{api.post(HOLDS, token=token, json=body).json['data']['id']}"

        settled = api.post(f"{path}/settle", token=token, json={"amount": 1})

        assert settled.json["data"]["counted"] == 1
        listed = api.get(f"{HOLDS}?tenant_id={tenant.id}", token=token).json["data"]
        assert listed == [settled.json["data"]]
        unnamed = api.post(HOLDS, token=token, json={"feature": "calls", "amount": 4})
        assert faults(unnamed) == [("missing", ["body", "tenant_id"], None)]
        nobody = {"feature": "calls", "amount": 4, "tenant_id": str(uuid4())}
        assert refusals(api.post(HOLDS, token=token, json=nobody)) == (404, "tenant_not_found")


class TestCommands:
    def test_hold_settle_and_list(self, app, tenant):
        def run(*words):
            result = app.test_cli_runner().invoke(args=["usage", "holds", *words, "--json"])
            assert result.exit_code == 0, result.output
            return json.loads(result.stdout)

        made = run("create", "calls", "4", "--tenant", tenant.slug)
        settled = run("settle", made["id"], "3")
        listed = run("list", "--tenant", tenant.slug)

        assert (settled["state"], settled["counted"]) == ("settled", 3)
        assert listed == [settled] == [run("show", made["id"])]

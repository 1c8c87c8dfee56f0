"""/v1/usage/leases."""

from datetime import timedelta
from uuid import uuid4

import pytest

from app.usage.models import UsageCounter, UsageHold
from tests import database
from tests.factories import (
    create_limits,
    limit_flag,
    platform_token,
)

LEASES = "/v1/usage/leases"


@pytest.fixture
def preset(app):
    return create_limits(
        "free",
        limit_flag("calls", 100, period="day"),
        limit_flag("storage", 5, policy="soft"),
        limit_flag("unlimited", -1),
        limit_flag("seats", 2),
    )


@pytest.fixture
def lend(api, key):
    """Take a lease with the tenant's key."""
    return lambda amount=40, feature="calls", **more: api.post(
        LEASES, token=key, json={"feature": feature, "amount": amount, **more}
    )


@pytest.fixture
def lease(lend):
    """Take a lease, and answer its path."""
    return lambda *args, **more: f"{LEASES}/{lend(*args, **more).json['data']['id']}"


@pytest.fixture
def report(api, key):
    return lambda path, used, **more: api.put(path, token=key, json={"used": used, **more})


def expire(hours=0):
    """Let all leases have expired some hours ago, unswept."""
    database.execute(
        "UPDATE usage_holds SET expires_at = now() - :hours * interval '1 hour'", hours=hours
    )


def counter(feature="calls"):
    row = database.row(UsageCounter, feature=feature)
    return row.used, row.held


def state(answer):
    assert answer.status_code == 200, answer.text
    return [answer.json["data"][name] for name in ("state", "amount", "counted", "over_by")]


def refusal(answer):
    return answer.status_code, answer.json.get("code")


def places(answer):
    assert answer.status_code == 422, answer.text
    return [error["loc"] for error in answer.json["detail"]]


class TestCreate:
    def test_lends_what_is_wanted(self, lend):
        answer = lend(40)

        data = answer.json["data"]
        assert answer.status_code == 201
        assert (data["kind"], data["state"], data["amount"]) == ("lease", "open", 40)
        assert data["remaining"] == 60
        row = database.row(UsageHold)
        assert row.expires_at - row.created_at == timedelta(seconds=60)
        assert counter() == (0, 40)

    def test_lends_everything_of_unlimited_ones(self, lend):
        assert lend(10**15, "unlimited").json["data"]["amount"] == 10**15

    @pytest.mark.parametrize("feature", ["storage", "seats", "nope"])
    def test_lends_nothing_of_soft_limits_seats_and_unknown_ones(self, lend, feature):
        assert places(lend(1, feature)) == [["body", "feature"]]

    @pytest.mark.parametrize(
        "wrong", [{"amount": 0}, {"amount": 10**15 + 1}, {"ttl_seconds": 4}, {"ttl_seconds": 301}]
    )
    def test_refuses_values_out_of_bounds(self, lend, wrong):
        assert places(lend(**wrong)) == [["body", *wrong]]


class TestRenew:
    def test_counts_what_was_used_since_the_last_report(self, lease, report):
        path = lease(40, ttl_seconds=300)
        before = database.row(UsageHold).expires_at

        answers = [state(report(path, used)) for used in (10, 10, 25)]

        assert answers == [["open", 30, 10, 0], ["open", 30, 10, 0], ["open", 15, 25, 0]]
        assert counter() == (25, 15)
        assert timedelta(0) < database.row(UsageHold).expires_at - before < timedelta(seconds=60)

    def test_of_more_than_fits_counts_what_fits_and_ends_it(self, lease, report, api, key):
        path = lease(40)
        lease(50)

        answers = [report(path, 70) for _ in range(2)]

        assert [refusal(answer) for answer in answers] == [(409, "limit_reached")] * 2
        assert answers[0].json["data"]["over_by"] == 20
        assert counter() == (50, 50)
        listed = api.get("/v1/usage/holds?state=settled", token=key).json["data"]
        assert [(one["counted"], one["over_by"]) for one in listed] == [(50, 20)]
        events = database.query("SELECT after FROM audit_events WHERE action = 'limit.overrun'")
        assert [event.after["over_by"] for event in events] == [20]

    def test_of_a_suspended_tenant_counts_and_ends_it(self, api, lease):
        path = lease(40)
        database.execute("UPDATE tenants SET is_active = false")

        answer = api.put(path, token=platform_token(), json={"used": 10, "amount": 80})

        assert state(answer) == ["settled", 0, 10, 0]
        assert counter() == (10, 0)

    @pytest.mark.parametrize(
        "wrong",
        [{"used": -1}, {"used": None}, {"used": 0.5}, {"amount": -1}, {"ttl_seconds": 301}],
    )
    def test_refuses_values_out_of_bounds(self, lease, api, key, wrong):
        answer = api.put(lease(), token=key, json={"used": 1, **wrong})

        assert places(answer) == [["body", *wrong]]


class TestWhoMay:
    def test_a_hold_is_no_lease_and_a_lease_no_hold(self, api, key, lease):
        lease_id = lease().rpartition("/")[2]
        body = {"feature": "calls", "amount": 1}
        hold_id = api.post("/v1/usage/holds", token=key, json=body).json["data"]["id"]
        hold = f"/v1/usage/holds/{lease_id}"

        answers = [
            api.put(f"{LEASES}/{hold_id}", token=key, json={"used": 1}),
            api.put(f"{LEASES}/{uuid4()}", token=key, json={"used": 1}),
            api.post(f"{hold}/settle", token=key, json={"amount": 1}),
            api.post(f"{hold}/extend", token=key, json={"ttl_seconds": 9}),
            api.delete(hold, token=key),
        ]

        codes = ["lease_not_found"] * 2 + ["hold_not_found"] * 3
        assert [refusal(answer) for answer in answers] == [(404, code) for code in codes]
        assert api.get(hold, token=key).json["data"]["kind"] == "lease"

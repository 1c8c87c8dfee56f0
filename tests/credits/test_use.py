"""Credits that are consumed and held, also for the use of other limits."""

import json
from collections import Counter
from datetime import timedelta
from time import sleep

import pytest

from app.audit.models import AuditEvent
from app.core.actors import SYSTEM_CLI
from app.core.clock import utcnow
from app.credits import service
from app.credits.jobs import refresh_credits
from app.credits.models import CreditBalance, CreditEntry, CreditHold, CreditLot
from app.usage import holds
from app.usage.hold_errors import HoldEnded
from app.usage.models import UsageHold
from tests import database
from tests.concurrency import at_once
from tests.credits.ledger import assert_balanced, expire_lot, turn
from tests.database import platform_transaction
from tests.factories import (
    create_api_key,
    create_limits,
    create_override,
    create_tenant,
    credits_flag,
    limit_flag,
    platform_token,
)

CONSUME = "/v1/usage/consume"
HOLDS = "/v1/usage/holds"


def burning(key, most, rate, *, policy="hard"):
    flag = limit_flag(key, most, period="month", policy=policy)
    flag["metering"]["burns"] = {"credits": "tokens", "rate": rate}
    return flag


@pytest.fixture
def preset(app):
    return create_limits(
        "free",
        credits_flag("tokens", 0),
        credits_flag("monthly", 100, period="month"),
        credits_flag("kept", 100, period="month", rollover="all"),
        credits_flag("capped", 100, period="month", rollover="cap", rollover_cap=30),
        credits_flag("open", -1),
        burning("images", -1, 10),
        burning("bulk", -1, 10**6),
        burning("pages", 5, 3),
        burning("soft", 1, 50, policy="soft"),
    )


@pytest.fixture
def tenant(preset):
    return create_tenant()


@pytest.fixture
def key(tenant):
    return create_api_key(tenant, ["usage:write", "usage:read"])


@pytest.fixture
def consume(api, key):
    return lambda feature="tokens", amount=1, **more: api.post(
        CONSUME, token=key, json={"feature": feature, "amount": amount, **more}
    )


@pytest.fixture
def check(api, key):
    return lambda feature="tokens", amount=1: api.post(
        "/v1/usage/check", token=key, json={"feature": feature, "amount": amount}
    ).json["data"]


@pytest.fixture
def hold(api, key):
    return lambda feature="tokens", amount=1, **more: api.post(
        HOLDS, token=key, json={"feature": feature, "amount": amount, **more}
    )


@pytest.fixture
def settle(api, key):
    return lambda held, amount: api.post(
        f"{HOLDS}/{held.json['data']['id']}/settle", token=key, json={"amount": amount}
    )


@pytest.fixture
def grant(tenant):
    """Grant tokens, and return the id of the lot."""

    def make(amount, feature="tokens", *, priority=100, expires_in=None, starts_in=None):
        now = utcnow()
        moments = {
            name: now + timedelta(seconds=seconds)
            for name, seconds in (("expires_at", expires_in), ("starts_at", starts_in))
            if seconds is not None
        }
        with platform_transaction():
            return service.grant(
                tenant.id,
                feature,
                amount,
                source="purchase",
                priority=priority,
                actor=SYSTEM_CLI,
                **moments,
            ).id

    return make


@pytest.fixture(autouse=True)
def ledger(request):
    """After each test the ledger, the lots and the balances agree."""
    yield
    assert_balanced()


def rest(*lots):
    """What is left of the lots."""
    return [database.row(CreditLot, id=lot).remaining for lot in lots]


def entries(feature="tokens"):
    return [(row.kind, row.amount) for row in database.rows(CreditEntry, feature=feature)]


def events(action):
    return [row.after["percent"] for row in database.rows(AuditEvent, action=action)]


class TestConsume:
    def test_answers_the_state_of_the_balance(self, consume, check, grant):
        grant(10)

        answer, refused = consume(amount=4).json["data"], consume(amount=7)

        assert answer == {
            "allowed": True,
            "feature": "tokens",
            "limit": 10,
            "used": 4,
            "remaining": 6,
            "resets_at": None,
            "policy": "hard",
        }
        assert (refused.status_code, refused.json["code"]) == (409, "limit_reached")
        assert refused.json["data"] == {**answer, "allowed": False} == check(amount=7)
        assert entries() == [("grant", 10), ("consume", -4)]

    def test_cannot_give_back(self, consume, grant):
        grant(5)

        assert consume(amount=-1).status_code == 422

    def test_of_an_unlimited_balance_is_counted(self, consume):
        answer = consume("open", 10**15).json["data"]

        assert (answer["limit"], answer["used"], answer["remaining"]) == (-1, 10**15, None)
        assert database.rows(CreditLot) == []

    def test_is_listed_and_cannot_be_corrected(self, api, consume, grant, key, tenant):
        grant(10)
        consume(amount=4)

        page = api.get("/v1/usage", token=key, query_string={"feature": "tokens"}).json["data"]
        answer = api.put(
            "/v1/usage/tokens",
            token=platform_token(),
            query_string={"tenant_id": str(tenant.id)},
            json={"used": 1, "reason": "x"},
        )

        assert [(row["limit"], row["used"], row["remaining"]) for row in page] == [(10, 4, 6)]
        assert answer.status_code == 422

    def test_by_many_threads_takes_exactly_the_balance(self, consume, grant):
        grant(50)
        grant(50, expires_in=1000)

        def take():
            return [consume(amount=3).status_code for _ in range(5)]

        answers = Counter(code for codes in at_once([take] * 8) for code in codes)

        assert answers == {200: 33, 409: 7}
        assert database.row(CreditBalance, feature="tokens").balance == 1


class TestPlan:
    def test_can_be_checked_before_anything_was_granted(self, check):
        assert check("monthly", 100)["allowed"] is True
        assert database.rows(CreditLot) == []

    @pytest.mark.parametrize(("feature", "left"), [("monthly", 0), ("kept", 60), ("capped", 30)])
    def test_keeps_of_the_last_period_what_the_rollover_says(self, consume, check, feature, left):
        consume(feature, 40)
        turn()

        assert check(feature)["remaining"] == 100 + left
        assert consume(feature, 0).json["data"]["remaining"] == 100 + left
        expired = [amount for kind, amount in entries(feature) if kind == "expire"]
        assert expired == ([left - 60] if left < 60 else [])

    def test_is_refreshed_by_a_job(self, app, consume):
        consume("monthly", 40)
        consume("capped", 40)
        turn()
        database.execute("UPDATE credit_balances SET due_at = now()")

        run_job(app)

        assert [row.balance for row in database.rows(CreditBalance)] == [130, 100]
        expired = database.rows(AuditEvent, action="credits.expired")
        assert sorted(row.after["expired"] for row in expired) == [30, 60]
        run_job(app)
        assert len(database.rows(AuditEvent, action="credits.expired")) == 2


def run_job(app):
    with app.app_context():
        refresh_credits()


class TestBurns:
    def test_takes_both_or_none(self, consume, grant):
        grant(16)

        few, limited = consume("images", 2), consume("pages", 6)
        taken, more = consume("pages", 5), consume("pages", 0)

        assert (few.status_code, few.json["data"]["remaining"]) == (409, 1)
        assert (limited.status_code, limited.json["data"]["remaining"]) == (409, 5)
        assert (taken.status_code, taken.json["data"]["remaining"]) == (200, 0)
        assert (more.status_code, entries()) == (200, [("grant", 16), ("consume", -15)])

    def test_is_refused_without_credits_also_of_a_soft_limit(self, consume, grant):
        grant(100)

        assert [consume("soft").status_code for _ in range(3)] == [200, 200, 409]

    def test_of_several_entries_in_any_order_does_not_stop_others(self, api, consume, grant, key):
        grant(10**6)
        orders = [("images", "pages"), ("tokens", "images"), ("monthly", "tokens"), ("pages",)]

        def take(features):
            entries = [{"feature": feature, "amount": 0} for feature in features]
            return [
                api.post(CONSUME, token=key, json={"entries": entries}).status_code
                for _ in range(10)
            ]

        answers = at_once([lambda one=one: take(one) for one in orders * 2])

        assert {code for codes in answers for code in codes} == {200}


class TestHolds:
    def test_takes_credits_and_returns_what_was_not_used(self, hold, settle, check, grant):
        lot = grant(10)

        held = hold(amount=6)

        assert (held.status_code, held.json["data"]["remaining"]) == (201, 4)
        assert (check()["used"], check()["remaining"], rest(lot)) == (0, 4, [4])
        assert hold(amount=5).status_code == 409
        answer = settle(held, 2)
        assert (answer.status_code, answer.json["data"]["remaining"]) == (200, 8)
        assert settle(held, 2).json == answer.json
        assert check()["used"] == 2
        assert entries() == [("grant", 10), ("hold", -6), ("release", 6), ("consume", -2)]
        assert database.rows(CreditHold) == []

    def test_expires_later_after_an_extension(self, api, hold, consume, grant, key):
        grant(10)
        held = hold(amount=8).json["data"]["id"]

        api.post(f"{HOLDS}/{held}/extend", token=key, json={"ttl_seconds": 5000})

        left = database.query("SELECT expires_at - now() > interval '1 hour' FROM credit_holds")
        assert left[0][0] is True
        api.delete(f"{HOLDS}/{held}", token=key)
        assert consume(amount=10).status_code == 200

    def test_of_a_lot_that_has_expired_are_no_negative_use(
        self, api, hold, settle, check, grant, key
    ):
        lot, _ = grant(10, expires_in=100), grant(10)
        held = hold(amount=10)
        expire_lot(lot)

        listed = api.get("/v1/usage", token=key, query_string={"feature": "tokens"}).json["data"]
        refused = hold(amount=11).json["data"]
        settled = settle(held, 7).json["data"]

        for row in (check(), refused, *listed):
            assert (row["limit"], row["used"], row["remaining"]) == (10, 0, 10)
        assert settled["remaining"] == 10

    def test_of_credits_that_are_unlimited_now_count_any_amount(
        self, hold, settle, grant, preset, tenant
    ):
        grant(10**6)
        bulk = hold("bulk", 1)
        create_override(tenant, preset, "tokens", -1)

        answer = settle(bulk, 10**15).json["data"]

        assert (answer["counted"], answer["over_by"], answer["remaining"]) == (10**15, 0, None)
        assert entries()[-2:] == [("release", 10**6), ("consume", -(10**6))]

    @pytest.mark.parametrize("feature", ["tokens", "images"])
    def test_cannot_be_a_lease(self, api, key, grant, feature):
        grant(100)

        answer = api.post(
            "/v1/usage/leases", token=key, json={"feature": feature, "amount": 1, "ttl_seconds": 60}
        )

        assert answer.status_code == 422
        assert answer.json["detail"][0]["loc"] == ["body", "feature"]

    def test_are_not_extended_after_their_credits_were_given_back(self, grant, hold, consume):
        """The credits were given back after the transaction that extends the hold had begun."""
        grant(100)
        held = hold("images", 3, ttl_seconds=1).json["data"]["id"]

        with platform_transaction():
            database.query("SELECT now()")
            sleep(1)
            at_once([lambda: consume("tokens", 80)])
            with pytest.raises(HoldEnded):
                holds.extend(held, 60)

        assert database.rows(CreditHold) == []
        assert database.row(UsageHold).expires_at < utcnow()

    def test_that_are_just_extended_keep_their_credits(self, grant, hold, consume):
        grant(100)
        held = hold("images", 3, ttl_seconds=2).json["data"]["id"]

        def extend():
            with platform_transaction():
                holds.extend(held, 60)
                sleep(2.5)

        def take():
            sleep(2.2)
            return consume("tokens", 80).status_code

        assert at_once([extend, take])[1] == 409
        assert database.row(CreditHold).amount == 30


class TestAlerts:
    @pytest.fixture(autouse=True)
    def preset(self, app):
        return create_limits("free", credits_flag("tokens", 0, warn_below=[50]))

    def test_are_told_once_until_a_grant(self, consume, grant):
        grant(200)
        for amount in (100, 50, 5, 5, 0, 10, 10, 20):
            assert consume(amount=amount).status_code == 200

        assert events("limit.warning") == [75, 80]
        assert events("limit.reached") == [100]

    def test_of_a_kind_are_told_once_in_an_hour(self, consume, grant):
        for _ in range(2):
            grant(200)
            consume(amount=200)
        assert events("limit.reached") == [100]

        database.execute(
            "UPDATE credit_balances SET told = jsonb_build_object('100%', now() - interval '2 hours')"
        )
        grant(200)
        consume(amount=200)

        assert events("limit.reached") == [100, 100]

    def test_are_also_told_when_credits_expire(self, app, consume, grant):
        expire_lot(grant(200, expires_in=100))

        run_job(app)

        assert events("limit.reached") == [100]

    def test_are_also_told_when_credits_are_found_expired(self, api, key, grant):
        expire_lot(grant(200, expires_in=100))

        assert api.get("/v1/credits", token=key).json["data"][0]["balance"] == 0

        assert events("limit.reached") == [100]

    def test_are_also_told_when_credits_are_revoked(self, grant):
        lot = grant(200)

        with platform_transaction():
            service.revoke(str(lot), reason="refund", actor=SYSTEM_CLI)

        assert events("limit.reached") == [100]

    def test_above_a_small_grant_are_none(self, app, consume, grant):
        flag = credits_flag("tokens", 0, warn_below=[10**15])
        database.execute("UPDATE plan_presets SET flags = :flags", flags=json.dumps([flag]))
        grant(2)

        assert consume().status_code == 200

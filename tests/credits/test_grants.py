"""/v1/credits: grant, revoke, balances and the ledger."""

from datetime import timedelta
from uuid import uuid4

import pytest

from app.audit.models import AuditEvent
from app.core.clock import rfc3339, utcnow
from app.credits.models import CreditEntry
from tests import database
from tests.factories import (
    create_api_key,
    create_limits,
    create_tenant,
    credits_flag,
    limit_flag,
    platform_token,
)

GRANTS = "/v1/credits/grants"


@pytest.fixture
def tenant(app):
    create_limits(
        "free", credits_flag("tokens", 0), credits_flag("open", -1), limit_flag("calls", 10)
    )
    return create_tenant()


@pytest.fixture
def grant(api, tenant):
    return lambda amount=100, **more: api.post(
        GRANTS,
        token=platform_token(),
        json={"feature": "tokens", "amount": amount, "source": "purchase"}
        | {"tenant_id": str(tenant.id), **more},
    )


@pytest.fixture
def revoke(api):
    return lambda lot, **body: api.post(
        f"{GRANTS}/{lot}/revoke", token=platform_token(), json={"reason": "refund", **body}
    )


@pytest.fixture
def balances(api, tenant):
    key = create_api_key(tenant, ["usage:read"])
    return lambda **query: {
        one["feature"]: one
        for one in api.get("/v1/credits", token=key, query_string=query).json["data"]
    }


def locs(answer):
    assert answer.status_code == 422, answer.text
    return [error["loc"] for error in answer.json["detail"]]


class TestGrant:
    def test_adds_a_lot_and_records_it(self, api, grant, balances):
        answer = grant(reference="invoice-42")

        lot = answer.json["data"]
        assert answer.status_code == 201
        assert (lot["granted"], lot["remaining"], lot["priority"]) == (100, 100, 100)
        assert (lot["source"], lot["reference"], lot["expires_at"]) == (
            "purchase",
            "invoice-42",
            None,
        )
        assert balances()["tokens"] == {
            "feature": "tokens",
            "balance": 100,
            "held": 0,
            "lots": [lot],
            "next_grant_at": None,
        }
        event = database.row(AuditEvent, action="credits.granted")
        assert (event.target_id, event.after) == (lot["id"], {"granted": 100})
        assert api.get(answer.headers["Location"], token=platform_token()).json["data"] == lot

    def test_cannot_be_used_before_it_starts(self, grant, balances):
        grant(starts_at=rfc3339(utcnow() + timedelta(hours=1)))

        assert balances()["tokens"]["balance"] == 0
        assert database.row(CreditEntry).balance == 100

    def test_in_the_past_starts_now(self, grant):
        lot = grant(starts_at="2020-01-01T00:00:00Z").json["data"]

        assert lot["starts_at"] > "2026"

    def test_refuses_features_that_are_no_credits(self, grant):
        for feature in ("calls", "nope", "seats"):
            assert locs(grant(feature=feature)) == [["body", "feature"]]

    @pytest.mark.parametrize("amount", [0, -1, 1.5, 10**15 + 1, None, "x"])
    def test_refuses_amounts_that_are_no_positive_integers(self, grant, amount):
        assert locs(grant(amount)) == [["body", "amount"]]

    def test_refuses_more_than_a_thousand_lots_that_are_not_used_up(self, grant, tenant):
        grant()
        database.execute(
            "INSERT INTO credit_lots (tenant_id, id, created_at, starts_at, feature, granted,"
            " remaining, spent, untold, version, priority, source) SELECT tenant_id,"
            " gen_random_uuid(), created_at, starts_at, feature, 1, 1, 0, 0, 0, 100, source"
            " FROM credit_lots CROSS JOIN generate_series(1, 999)"
        )
        assert locs(grant()) == [["body", "feature"]]

        database.execute("UPDATE credit_lots SET remaining = 0 WHERE granted = 1")
        assert grant().status_code == 201

    def test_refuses_a_sum_that_is_too_large(self, grant):
        grant()
        database.execute("UPDATE credit_lots SET granted = 1000000000000000000 - 5")

        assert locs(grant(6)) == [["body", "amount"]]
        assert grant(5).status_code == 201

    def test_refuses_a_lot_that_ends_before_it_starts(self, grant):
        later, past = (rfc3339(utcnow() + timedelta(days=day)) for day in (2, -1))

        assert locs(grant(expires_at=past)) == [["body", "expires_at"]]
        assert locs(grant(starts_at=later, expires_at=later)) == [["body", "expires_at"]]

    def test_of_an_unknown_tenant_is_not_found(self, grant):
        answer = grant(tenant_id=str(uuid4()))

        assert (answer.status_code, answer.json["code"]) == (404, "tenant_not_found")


class TestRevoke:
    def test_takes_what_is_left_and_tells_what_was_spent(self, grant, revoke, balances):
        lot = grant().json["data"]
        database.execute("UPDATE credit_lots SET remaining = 70, spent = 30")
        database.execute("UPDATE credit_balances SET balance = 70")

        part, rest, again = (
            revoke(lot["id"], **body).json["data"] for body in ({"amount": 20}, {"amount": 99}, {})
        )

        assert [
            (one["revoked"], one["remaining"], one["spent"]) for one in (part, rest, again)
        ] == [
            (20, 50, 30),
            (50, 0, 30),
            (0, 0, 30),
        ]
        assert balances()["tokens"]["balance"] == 0
        assert len(database.rows(AuditEvent, action="credits.revoked")) == 2
        entry = database.query("SELECT * FROM credit_entries ORDER BY number DESC")[0]
        assert (entry.kind, entry.amount, entry.balance, entry.reason) == (
            "revoke",
            -50,
            0,
            "refund",
        )


class TestExpiry:
    def test_takes_effect_before_any_job(self, grant, balances):
        grant(expires_at=rfc3339(utcnow() + timedelta(hours=1)))
        grant(7)
        expire()

        assert balances()["tokens"]["balance"] == 7
        entry = database.query("SELECT * FROM credit_entries ORDER BY number DESC")[0]
        assert (entry.kind, entry.amount, entry.balance) == ("expire", -100, 7)


def expire():
    """Let all lots that have an end be over."""
    database.execute("UPDATE credit_lots SET expires_at = now() WHERE expires_at IS NOT NULL")
    database.execute("UPDATE credit_balances SET due_at = now()")


class TestEntries:
    def test_are_listed_by_pages_the_newest_first(self, api, grant, tenant):
        for amount in range(1, 6):
            grant(amount)
        key, seen, cursor = create_api_key(tenant, ["usage:read"]), [], None

        while True:
            query = {"limit": 2, "feature": "tokens"} | ({"cursor": cursor} if cursor else {})
            page = api.get("/v1/credits/entries", token=key, query_string=query).json
            seen += page["data"]
            cursor = page["next_cursor"]
            if cursor is None:
                break

        assert [entry["amount"] for entry in seen] == [5, 4, 3, 2, 1]
        assert [entry["balance"] for entry in seen] == [15, 10, 6, 3, 1]
        everything = api.get("/v1/credits/entries", token=key).json["data"]
        assert everything == seen


class TestPastBalances:
    def test_are_those_of_the_time(self, grant, revoke, balances):
        first = grant(100).json["data"]
        before = utcnow()
        grant(50, expires_at=rfc3339(before + timedelta(hours=1)))
        revoke(first["id"], amount=30)

        old, now = balances(at=rfc3339(before))["tokens"], balances()["tokens"]

        assert (old["balance"], [lot["remaining"] for lot in old["lots"]]) == (100, [100])
        assert (old["held"], old["next_grant_at"]) == (None, None)
        assert (now["balance"], [lot["remaining"] for lot in now["lots"]]) == (120, [50, 70])

    def test_are_not_those_of_the_future(self, api, tenant):
        key, at = create_api_key(tenant, ["usage:read"]), rfc3339(utcnow() + timedelta(days=1))

        assert locs(api.get("/v1/credits", token=key, query_string={"at": at})) == [["query", "at"]]


class TestUnlimited:
    def test_has_no_balance(self, balances):
        assert balances()["open"]["balance"] is None

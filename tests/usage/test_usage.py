"""GET /v1/usage and PUT /v1/usage/{feature}."""

import pytest

from app.audit.models import AuditEvent
from tests import database
from tests.factories import (
    create_api_key,
    create_limits,
    create_member,
    create_tenant,
    limit_flag,
    platform_token,
)
from tests.usage.days import pass_days

URL = "/v1/usage"


@pytest.fixture
def tenant(app):
    create_limits("free", limit_flag("calls", 10, period="day"), limit_flag("seats", 3))
    return create_tenant()


@pytest.fixture
def key(tenant):
    return create_api_key(tenant, ["usage:read", "usage:write"])


@pytest.fixture
def consume(api, key):
    return lambda feature, amount: api.post(
        f"{URL}/consume", token=key, json={"feature": feature, "amount": amount}
    )


class TestList:
    def test_shows_limits_of_which_nothing_was_used_and_seats(self, api, tenant, key):
        create_member(tenant)

        calls, seats = api.get(URL, token=key).json["data"]

        assert (calls["feature"], calls["used"], calls["remaining"]) == ("calls", 0, 10)
        assert calls["is_current"] is True
        assert (seats["feature"], seats["used"], seats["period_start"]) == ("seats", 1, None)
        assert seats["resets_at"] is None

    def test_shows_past_periods_after_the_current_one(self, api, key, consume):
        for amount in (3, 4):
            consume("calls", amount)
            pass_days()

        found = api.get(URL, token=key, query_string={"feature": "calls"}).json["data"]

        assert [row["used"] for row in found] == [0, 4, 3]
        assert [row["limit"] for row in found] == [10, None, None]
        assert [row["is_current"] for row in found] == [True, False, False]
        assert [row["resets_at"] for row in found[1:]] == [row["period_start"] for row in found[:2]]

    def test_pages_show_each_row_once(self, api, key, consume):
        for amount in range(1, 6):
            consume("calls", amount)
            pass_days()

        rows, cursor = [], {}
        while cursor is not None:
            answer = api.get(URL, token=key, query_string={"limit": 2, **cursor})
            rows += answer.json["data"]
            following = answer.json["next_cursor"]
            cursor = {"cursor": following} if following else None

        assert [row["used"] for row in rows] == [0, 5, 4, 3, 2, 1, 0]
        assert rows == api.get(URL, token=key).json["data"]

    def test_shows_periods_that_overlap_a_time(self, api, key, consume):
        for amount in (1, 2, 3):
            consume("calls", amount)
            pass_days()
        ((start, end),) = database.query(
            "SELECT period_start, period_end FROM usage_counters WHERE used = 2"
        )

        query = {"feature": "calls", "from": start.isoformat(), "to": end.isoformat()}
        found = api.get(URL, token=key, query_string=query).json["data"]

        assert [row["used"] for row in found] == [2]

    def test_needs_the_platform_to_name_a_tenant(self, api, tenant):
        token = platform_token()

        unnamed = api.get(URL, token=token)
        named = api.get(URL, token=token, query_string={"tenant_id": str(tenant.id)})

        assert unnamed.json["detail"][0]["loc"] == ["query", "tenant_id"]
        assert len(named.json["data"]) == 2


class TestCorrect:
    @pytest.fixture
    def correct(self, api, tenant):
        return lambda feature, **body: api.put(
            f"{URL}/{feature}",
            token=platform_token(),
            query_string={"tenant_id": str(tenant.id)},
            json=body,
        )

    def test_sets_what_is_used_and_audits_it(self, correct, consume):
        consume("calls", 7)

        answer = correct("calls", used=2, reason="A test")

        assert (answer.json["data"]["used"], answer.json["data"]["remaining"]) == (2, 8)
        event = database.row(AuditEvent, action="usage.corrected")
        assert (event.target_type, event.target_id) == ("usage", "calls")
        assert (event.before, event.after) == ({"used": 7}, {"used": 2, "reason": "A test"})
        assert consume("calls", 1).json["data"]["used"] == 3

    def test_can_exceed_the_limit(self, correct):
        assert correct("calls", used=12, reason="x").json["data"]["over_by"] == 2

    def test_refuses_unknown_limits_and_seats(self, correct):
        assert correct("nope", used=1, reason="x").status_code == 404
        assert correct("seats", used=1, reason="x").status_code == 422

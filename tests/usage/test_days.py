"""GET /v1/usage/days, the job that stores the counts of each day, and the event limit.forecast."""

from datetime import datetime, timedelta

import pytest

from app.core.actors import SYSTEM_CLI
from app.core.clock import utcnow
from app.credits import service as credits
from app.events.models import OutboxEvent
from app.usage import jobs, service
from app.usage.models import UsageCounter, UsageDay
from app.usage.service import Request
from tests import database
from tests.database import platform_transaction
from tests.factories import (
    create_api_key,
    create_limits,
    create_lot,
    create_tenant,
    credits_flag,
    limit_flag,
    platform_token,
)
from tests.usage.days import pass_days

URL = "/v1/usage/days"


@pytest.fixture
def preset(app):
    return create_limits(
        "free",
        limit_flag("calls", 1000, period="day"),
        limit_flag("projects", 100, warn_days=30),
        limit_flag("jobs", 100, period="month", warn_days=90),
        limit_flag("exports", 100),
        limit_flag("unlimited", -1, warn_days=30),
        limit_flag("seats", 3),
    )


@pytest.fixture
def tenant(preset):
    return create_tenant()


@pytest.fixture
def key(tenant):
    return create_api_key(tenant, ["usage:read"])


@pytest.fixture
def consume(tenant):
    def send(feature, amount):
        with platform_transaction():
            request = Request(feature=feature, amount=amount)
            service.consume(tenant.id, request, actor=SYSTEM_CLI)

    return send


@pytest.fixture
def store(app, monkeypatch):
    monkeypatch.setattr(jobs, "BATCH", 2)  # so that one batch is not enough

    def run():
        with app.app_context():
            jobs.store_counts()

    return run


@pytest.fixture
def get(api, key):
    def read(feature, **query):
        answer = api.get(URL, token=key, query_string={"feature": feature, **query})
        assert answer.status_code == 200, answer.text
        return answer.json["data"]

    return read


@pytest.fixture
def use(consume, store):
    """Consume these amounts, one each day; the last one today."""

    def run(feature, *amounts):
        for place, amount in enumerate(amounts):
            if place:
                pass_days()
            consume(feature, amount)
            store()

    return run


def last(found, days):
    return [each["used"] for each in found["days"][-days:]]


def forecasts():
    return [event.data for event in database.rows(OutboxEvent, type="limit.forecast")]


class TestDays:
    @pytest.mark.parametrize("feature", ["calls", "projects", "jobs", "unlimited"])
    def test_show_what_each_has_used(self, use, consume, get, feature):
        use(feature, 3, 4, 5)
        consume(feature, 1)  # no job has stored it yet

        found = get(feature, days=5)

        today = utcnow().date()
        assert found["feature"] == feature
        assert [each["day"] for each in found["days"]] == [
            str(today - timedelta(days=ago)) for ago in (4, 3, 2, 1, 0)
        ]
        assert last(found, 5) == [0, 0, 3, 4, 6]

    def test_are_thirty_by_default(self, get):
        assert last(get("calls"), 99) == [0] * 30

    def test_are_negative_where_more_was_given_back(self, use, get):
        use("projects", 5, -2)

        assert last(get("projects"), 2) == [5, -2]

    def test_count_what_a_period_has_used_after_its_last_stored_count(self, consume, store, get):
        consume("calls", 3)
        store()
        consume("calls", 4)
        pass_days()

        store()

        assert last(get("calls"), 2) == [7, 0]

    def test_are_stored_for_counts_that_have_changed(self, use, store):
        use("projects", 1, 1)
        use("exports", 1)
        pass_days()
        before = database.rows(UsageDay)

        store()

        assert len(before) == 3
        assert database.rows(UsageDay) == before

    def test_are_kept_for_100_days(self, app, use, get):
        use("projects", *[1] * 3)
        pass_days(98)

        with app.app_context():
            jobs.forget_old_usage()

        ages = [(utcnow().date() - row.day).days for row in database.rows(UsageDay)]
        assert ages == [99, 98]

    def test_know_the_difference_after_a_long_time_without_use(self, app, use, store, consume, get):
        use("projects", 5)
        for _ in range(3):
            pass_days(40)
            store()
            with app.app_context():
                jobs.forget_old_usage()
        pass_days()

        consume("projects", 2)

        assert last(get("projects", days=90), 90) == [0] * 89 + [2]


class TestErrors:
    def test_an_unknown_limit_is_not_found(self, api, key):
        answer = api.get(URL, token=key, query_string={"feature": "unknown"})

        assert answer.status_code == 404

    def test_another_tenants_use_is_not_shown(self, api, use, tenant):
        use("calls", 1)
        query = {"feature": "calls", "tenant_id": str(create_tenant().id)}

        answer = api.get(URL, token=platform_token(), query_string=query)

        assert last(answer.json["data"], 1) == [0]

    @pytest.mark.parametrize(
        ("query", "field"),
        [
            ({}, "feature"),
            ({"feature": "seats"}, "feature"),
            ({"feature": "calls", "days": 0}, "days"),
            ({"feature": "calls", "days": 91}, "days"),
        ],
    )
    def test_are_beside_the_field(self, api, key, query, field):
        answer = api.get(URL, token=key, query_string=query)

        assert answer.status_code == 422
        assert [error["loc"] for error in answer.json["detail"]] == [["query", field]]


class TestForecast:
    def test_has_the_pace_and_the_end(self, use, get):
        use("projects", 5, 5, 5, 5, 5, 5, 5)

        forecast = get("projects")["forecast"]

        now = utcnow()
        passed = 6 + (now.hour * 3600 + now.minute * 60 + now.second) / 86_400
        assert forecast["pace_per_day"] == pytest.approx(35 / passed, abs=0.06)
        ends = datetime.fromisoformat(forecast["ends_at"])
        assert abs(ends - now - timedelta(days=65 * passed / 35)) < timedelta(minutes=1)

    @pytest.mark.parametrize(
        ("feature", "amount"),
        [
            ("unlimited", 5),
            ("calls", 5),  # the day ends before
            ("exports", 1),  # more than a year
            ("exports", 0),
        ],
    )
    def test_has_no_end(self, use, get, feature, amount):
        use(feature, amount)

        assert get(feature)["forecast"]["ends_at"] is None

    def test_ends_at_once_where_nothing_is_left(self, use, get):
        use("projects", 100)

        ends = datetime.fromisoformat(get("projects")["forecast"]["ends_at"])

        assert abs(utcnow() - ends) < timedelta(minutes=1)

    def test_does_not_count_days_before_the_last_seven(self, use, get):
        use("projects", 50)
        pass_days(7)

        assert get("projects")["forecast"] == {"pace_per_day": 0, "ends_at": None}

    def test_is_not_negative(self, use, get):
        use("projects", 50)
        pass_days(8)
        use("projects", -10)

        assert get("projects")["forecast"] == {"pace_per_day": 0, "ends_at": None}


class TestEvent:
    def test_is_recorded_once(self, use, get):
        use("projects", 60, 20)

        use("projects", 1)

        pace = get("projects")["forecast"]
        ((event),) = forecasts()
        ends = datetime.fromisoformat(event.pop("ends_at"))
        assert ends < utcnow() + timedelta(days=30)
        assert event.pop("pace_per_day") > pace["pace_per_day"] / 3
        assert event == {"feature": "projects", "used": 60, "limit": 100}
        assert database.row(UsageCounter).forecast_at is not None

    def test_is_recorded_again_in_a_new_period(self, use, tenant):
        use("jobs", 99)
        database.execute("UPDATE usage_counters SET period_end = now() - interval '1 second'")

        use("jobs", 98)

        assert [event["used"] for event in forecasts()][:1] == [99]
        assert database.query("SELECT count(*) FROM usage_counters")[0][0] == 2

    @pytest.mark.parametrize(
        ("feature", "amount"),
        [
            ("projects", 5),  # it ends in more than 30 days
            ("projects", 100),  # it has ended
            ("exports", 90),  # without `warn_days`
            ("unlimited", 90),
        ],
    )
    def test_is_not_recorded(self, use, feature, amount):
        use(feature, amount)

        assert forecasts() == []


class TestWarnDays:
    def test_is_shown_where_it_is_set(self, api, preset):
        found = api.get(f"/v1/billing/plans/{preset.id}", token=platform_token()).json["data"]

        shown = {flag["flag_key"]: flag["metering"] for flag in found["flags"]}
        assert shown["projects"]["warn_days"] == 30
        assert "warn_days" not in shown["exports"]

    @pytest.mark.parametrize("days", [0, 91, "x", None])
    def test_is_from_1_to_90(self, api, app, days):
        flag = limit_flag("projects", warn_days=days)

        answer = api.post(
            "/v1/billing/plans", token=platform_token(), json={"name": "pro", "flags": [flag]}
        )

        assert answer.status_code == 422
        loc = ["body", "flags", 0, "metering", "warn_days"]
        assert [error["loc"] for error in answer.json["detail"]] == [loc]


class TestCredits:
    @pytest.fixture
    def tokens(self, app):
        create_limits("free", credits_flag("tokens", 0, warn_days=30))
        return create_lot(create_tenant().id, "tokens", 100)

    @pytest.fixture
    def burn(self, tokens, store):
        def run(amount):
            with platform_transaction():
                request = Request(feature="tokens", amount=amount)
                service.consume(tokens.tenant_id, request, actor=SYSTEM_CLI)
            store()

        return run

    def get(self, api, lot):
        query = {"feature": "tokens", "tenant_id": str(lot.tenant_id)}
        return api.get(URL, token=platform_token(), query_string=query).json["data"]

    def test_are_what_was_used_of_them(self, api, tokens, burn):
        burn(10)
        pass_days()
        burn(20)

        found = self.get(api, tokens)

        assert last(found, 3) == [0, 10, 20]
        ends = datetime.fromisoformat(found["forecast"]["ends_at"])
        assert timedelta(days=14) < ends - utcnow() < timedelta(days=17)

    def test_forecast_the_end_once_after_each_grant(self, tokens, burn):
        burn(50)
        burn(20)
        with platform_transaction():
            credits.grant(
                tokens.tenant_id, "tokens", 10, source="refund", priority=100, actor=SYSTEM_CLI
            )
        burn(5)  # within an hour
        database.execute("UPDATE usage_counters SET forecast_at = now() - interval '2 hours'")
        burn(5)
        burn(5)

        assert [(each["used"], each["limit"]) for each in forecasts()] == [(50, 100), (80, 110)]

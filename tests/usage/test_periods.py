"""The period of a limit at any moment, compared with a calculation in Python."""

import calendar
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import database
from tests.factories import create_subscription, create_tenant

MONTHS = {"monthly": 1, "quarterly": 3, "semiannual": 6, "annual": 12}


def period_of(tenant, moment, *, kind="billing_cycle"):
    ((starts, ends),) = database.query(
        "SELECT * FROM usage_period(CAST(:tenant_id AS uuid), 'calls', :kind, :moment)",
        tenant_id=str(tenant.id),
        kind=kind,
        moment=moment,
    )
    return starts, ends


def subscribed(start, cycle="monthly", **values):
    tenant = create_tenant()
    create_subscription(tenant, start_date=start, billing_cycle=cycle, **values)
    return tenant


def midnight(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def later(anchor: date, months: int) -> date:
    year, month = divmod(anchor.year * 12 + anchor.month - 1 + months, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return date(year, month + 1, min(anchor.day, last))


def expected(anchor: date, cycle: str, today: date) -> tuple[date, date]:
    """Count from the anchor, one cycle after another."""
    if cycle == "weekly":
        start = today - timedelta(days=(today - anchor).days % 7)
        return start, start + timedelta(days=7)
    step, count = MONTHS[cycle], 0
    while later(anchor, count * step) > today:
        count -= 1
    while later(anchor, (count + 1) * step) <= today:
        count += 1
    return later(anchor, count * step), later(anchor, (count + 1) * step)


class TestStartDay:
    @pytest.mark.parametrize(
        ("moment", "starts", "ends"),
        [
            ("2026-01-30T23:59:59Z", "2025-12-31", "2026-01-31"),
            ("2026-01-31T00:00:00Z", "2026-01-31", "2026-02-28"),
            ("2026-02-27T12:00:00Z", "2026-01-31", "2026-02-28"),
            ("2026-02-28T00:00:00Z", "2026-02-28", "2026-03-31"),
            ("2028-02-29T00:00:00Z", "2028-02-29", "2028-03-31"),
        ],
    )
    def test_is_the_last_day_of_a_shorter_month(self, app, moment, starts, ends):
        tenant = subscribed(datetime(2025, 10, 31, 15, tzinfo=UTC))

        assert period_of(tenant, moment, kind="month") == (midnight(starts), midnight(ends))

    def test_is_of_the_subscription_that_decides_the_plan(self, app):
        tenant = subscribed(midnight("2026-01-10"))
        create_subscription(tenant, start_date=midnight("2026-02-20"))
        create_subscription(tenant, start_date=midnight("2026-03-05"), bp_status="canceled")

        starts, _ = period_of(tenant, "2026-06-01T00:00:00Z")

        assert starts == midnight("2026-05-20")

    def test_is_the_day_of_creation_without_a_subscription(self, app):
        tenant = create_tenant(created_at=datetime(2026, 1, 12, 18, tzinfo=UTC))

        for kind in ("month", "billing_cycle"):
            found = period_of(tenant, "2026-03-01T00:00:00Z", kind=kind)
            assert found == (midnight("2026-02-12"), midnight("2026-03-12"))

    def test_does_not_matter_for_a_day(self, app):
        tenant = subscribed(midnight("2026-01-10"))

        found = period_of(tenant, "2026-03-01T23:59:59Z", kind="day")

        assert found == (midnight("2026-03-01"), midnight("2026-03-02"))


class TestPeriodThatHasBegun:
    @pytest.fixture
    def tenant(self, app):
        tenant = subscribed(midnight("2026-01-10"))
        database.execute(
            "INSERT INTO usage_counters VALUES"
            " (CAST(:id AS uuid), '2026-03-10Z', '2026-04-10Z', 5, 0, 'calls')",
            id=str(tenant.id),
        )
        create_subscription(tenant, start_date=midnight("2026-03-25"))
        return tenant

    def test_keeps_its_end_when_the_subscription_changes(self, tenant):
        found = period_of(tenant, "2026-04-09T23:00:00Z")

        assert found == (midnight("2026-03-10"), midnight("2026-04-10"))

    def test_is_followed_by_one_that_ends_on_the_new_start_day(self, tenant):
        found = period_of(tenant, "2026-04-10T00:00:00Z")

        assert found == (midnight("2026-04-10"), midnight("2026-04-25"))

    def test_is_followed_by_whole_ones(self, tenant):
        found = period_of(tenant, "2026-07-01T00:00:00Z")

        assert found == (midnight("2026-06-25"), midnight("2026-07-25"))


class TestEveryMoment:
    @settings(
        max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(
        anchor=st.dates(date(2020, 1, 1), date(2032, 12, 31)),
        today=st.dates(date(2020, 1, 1), date(2032, 12, 31)),
        cycle=st.sampled_from(["weekly", *MONTHS]),
    )
    def test_is_in_the_expected_period(self, app, anchor, today, cycle):
        tenant = subscribed(midnight(anchor.isoformat()), cycle)

        found = period_of(tenant, f"{today}T12:00:00Z")

        assert tuple(one.date() for one in found) == expected(anchor, cycle, today)

"""Old counts and idempotency keys are deleted."""

import pytest

from app.core.actors import SYSTEM_CLI
from app.core.db import batches
from app.usage import jobs, service
from app.usage.models import UsageCounter, UsageKey
from app.usage.service import Request
from tests import database
from tests.database import platform_transaction
from tests.factories import create_limits, create_tenant, limit_flag
from tests.usage.days import pass_days


@pytest.fixture
def tenant(app):
    create_limits("free", limit_flag("calls", 10, period="day"), limit_flag("projects", 3))
    return create_tenant()


@pytest.fixture
def consume(tenant):
    def send(feature, key=None):
        with platform_transaction():
            request = Request(feature=feature, idempotency_key=key)
            service.consume(tenant.id, request, actor=SYSTEM_CLI)

    return send


@pytest.fixture
def forget(app, monkeypatch):
    monkeypatch.setattr(batches, "BATCH", 2)  # so that one batch is not enough

    def run():
        with app.app_context():
            jobs.forget_old_usage()

    return run


class TestKeys:
    def test_are_deleted_after_a_day(self, consume, forget):
        for key in "abcde":
            consume("calls", key)
        database.execute("UPDATE usage_keys SET created_at = now() - interval '26 hours'")
        consume("calls", "new")

        forget()

        assert len(database.rows(UsageKey)) == 1

    def test_are_kept_as_long_as_they_count(self, consume, forget):
        consume("calls", "a")
        database.execute("UPDATE usage_keys SET created_at = now() - interval '24 hours'")

        forget()

        assert len(database.rows(UsageKey)) == 1


class TestPeriods:
    def test_are_deleted_after_the_setting(self, app, consume, forget):
        days = app.extensions["config"].usage_history_days
        for _ in range(5):
            consume("calls")
            pass_days()
        pass_days(days - 3)
        consume("calls")

        forget()

        # The newest of the five ended `days - 3` days ago and some hours.
        ages = database.query(
            "SELECT extract(day FROM now() - period_end)::int AS days FROM usage_counters"
            " ORDER BY period_end"
        )
        assert [age.days for age in ages[:-1]] == [days - 1, days - 2, days - 3]

    def test_without_an_end_are_kept(self, consume, forget):
        consume("projects")

        forget()

        assert database.row(UsageCounter).used == 1

    def test_of_every_tenant_are_deleted(self, consume, forget):
        consume("calls")
        database.execute(
            "INSERT INTO usage_counters (tenant_id, feature, period_start, period_end, used,"
            " announced) VALUES (CAST(:id AS uuid), 'calls', '2001-01-01Z', '2001-01-02Z', 1, 0)",
            id=str(create_tenant().id),
        )

        forget()

        assert database.row(UsageCounter).used == 1

"""Old counts, idempotency keys and holds are deleted; holds that have expired are swept."""

import pytest

from app.core.actors import SYSTEM_CLI
from app.core.db import batches
from app.usage import holds, jobs, service
from app.usage.models import UsageCounter, UsageHold, UsageKey
from app.usage.service import Request
from app.usage.statements import LOCK
from tests import database
from tests.concurrency import at_once
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


class TestHolds:
    @pytest.fixture
    def hold(self, tenant):
        def take(feature="projects"):
            with platform_transaction():
                return holds.hold(tenant.id, feature=feature, amount=1, ttl_seconds=60)

        return take

    @pytest.fixture
    def sweep(self, app):
        def run():
            with app.app_context():
                jobs.sweep_holds()

        return run

    @pytest.mark.parametrize(("days", "kept"), [(29, 3), (30, 0)])
    def test_are_deleted_30_days_after_their_end(self, hold, forget, days, kept):
        for _ in range(3):
            hold()
        database.execute(
            "UPDATE usage_holds SET state = 'settled', ended_at = now() - :days * interval '1 day'",
            days=days,
        )

        forget()

        assert len(database.rows(UsageHold)) == kept

    def test_that_are_open_are_kept(self, hold, forget):
        hold()
        database.execute("UPDATE usage_holds SET created_at = now() - interval '60 days'")

        forget()

        assert database.row(UsageHold).state == "open"

    def test_keep_the_count_of_their_period(self, app, hold, forget):
        hold("calls")
        pass_days(app.extensions["config"].usage_history_days + 5)

        forget()

        assert database.row(UsageCounter).held == 1

    def test_are_swept_after_they_have_expired(self, hold, sweep):
        hold()
        hold("calls")
        database.execute("UPDATE usage_holds SET expires_at = now() WHERE feature = 'projects'")

        sweep()

        rows = {row.feature: row for row in database.rows(UsageHold)}
        assert (rows["projects"].state, rows["calls"].state) == ("expired", "open")
        assert rows["projects"].ended_at == rows["projects"].expires_at
        held = {row.feature: row.held for row in database.rows(UsageCounter)}
        assert held == {"projects": 0, "calls": 1}

    def test_are_swept_without_waiting_for_a_lock(self, tenant, hold, sweep):
        hold()
        hold("calls")
        with platform_transaction():
            LOCK.first(tenant_id=tenant.id, feature="projects")
            database.execute("UPDATE usage_holds SET expires_at = now()")

            at_once([sweep])  # in a thread, because this one has a transaction

        states = {row.feature: row.state for row in database.rows(UsageHold)}
        assert states == {"projects": "open", "calls": "expired"}


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

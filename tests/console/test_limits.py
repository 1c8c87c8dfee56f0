"""The page of a limit: its use by day, what is held, and credits."""

import re

import pytest

from app.usage import holds
from tests import database
from tests.console.world import use
from tests.database import platform_transaction
from tests.factories import (
    create_limits,
    create_lot,
    create_member,
    create_tenant,
    credits_flag,
    limit_flag,
)


@pytest.fixture
def plan(app):
    return create_limits(
        "free",
        limit_flag("projects", 10_000, warn_days=14),
        limit_flag("seats", 3),
        credits_flag("tokens", 0),
    )


@pytest.fixture
def tenant(plan):
    return create_tenant()


@pytest.fixture
def page(tenant):
    return f"/console/tenants/{tenant.id}/flags"


class TestDays:
    def test_are_bars_with_the_forecast(self, signed_in, tenant, page):
        use(tenant, "projects", *[1000] * 7)

        shown = signed_in(create_member(tenant, "viewer")[0]).get(f"{page}/projects").text

        bars = re.findall(r'<rect class="(?:past|current)".*?<title>(.*?)</title>', shown)
        assert len(bars) == 30
        assert [bar.rpartition(": ")[2] for bar in bars] == ["0"] * 23 + ["1,000"] * 7
        assert 'class="forecast"' in shown
        assert 'class="end"' in shown
        assert "7,000 in the last 30 days" in shown
        assert "At this pace the limit ends <time" in shown

    def test_have_no_line_without_a_pace(self, browser, page):
        shown = browser.get(f"{page}/projects").text

        assert 'class="forecast"' not in shown
        assert "the limit ends" not in shown

    def test_of_seats_are_not_shown(self, browser, page):
        shown = browser.get(f"{page}/seats").text

        assert "in the last 30 days" not in shown


class TestPlan:
    def test_keeps_how_a_limit_is_metered(self, browser, plan):
        edit = f"/console/plans/{plan.id}/flags/projects/edit"

        def metering():
            ((flags,),) = database.query("SELECT flags FROM plan_presets")
            return flags[0]["metering"]

        values = {"default_value": "5", "period": "none", "policy": "hard", "warn_at": "80, 100"}
        browser.send(edit, **values, warn_days="7")
        changed = metering()
        browser.send(edit, **values, warn_days="")

        assert changed == limit_flag(warn_days=7)["metering"]
        assert metering() == limit_flag()["metering"]


class TestHolds:
    @pytest.fixture
    def hold(self, tenant):
        with platform_transaction():
            return holds.hold(
                tenant.id, feature="projects", amount=1500, ttl_seconds=300, reference="order-42"
            )

    def test_are_shown_and_released(self, browser, page, hold):
        shown = browser.get(f"{page}/projects").text
        answer = browser.send(f"{page}/projects/holds/{hold.id}/release")
        after = browser.get(f"{page}/projects").text

        assert "order-42" in shown
        assert "1,500" in shown
        assert answer.status_code == 303
        assert "The hold was released." in after
        assert "Nothing is held." in after

    def test_are_not_released_by_people_of_the_tenant(self, signed_in, tenant, page, hold):
        browser = signed_in(create_member(tenant, "owner")[0])

        shown = browser.get(f"{page}/projects").text
        answer = browser.send(f"{page}/projects/holds/{hold.id}/release")

        assert "order-42" in shown
        assert "/release" not in shown
        assert answer.status_code == 403


class TestCredits:
    @pytest.fixture
    def lot(self, tenant):
        return create_lot(tenant.id, "tokens", 1000)

    def test_are_granted_and_revoked(self, browser, page):
        granted = browser.send(
            f"{page}/tokens/credits/grant", amount="1500", source="refund", reference="invoice-42"
        )
        ((lot_id,),) = database.query("SELECT id FROM credit_lots")
        shown = browser.get(f"{page}/tokens").text
        revoked = browser.send(f"{page}/tokens/credits/{lot_id}/revoke", reason="Paid back")
        after = browser.get(f"{page}/tokens").text
        ledger = browser.get(f"{page}/tokens/credits").text

        assert (granted.status_code, revoked.status_code) == (303, 303)
        assert "invoice-42" in shown
        assert '<p class="figure">1,500</p>' in shown
        assert "1,500 credits were revoked; 0 had been used." in after
        assert "No credits are left." in after
        assert "-1,500" in ledger
        assert "Paid back" in ledger

    def test_are_read_by_people_of_the_tenant(self, signed_in, tenant, page, lot):
        browser = signed_in(create_member(tenant, "viewer")[0])

        shown = browser.get(f"{page}/tokens").text
        answer = browser.send(f"{page}/tokens/credits/grant", amount="5", source="refund")

        assert '<p class="figure">1,000</p>' in shown
        assert "Grant credits" not in shown
        assert "/revoke" not in shown
        assert browser.get(f"{page}/tokens/credits").status_code == 200
        assert answer.status_code == 403

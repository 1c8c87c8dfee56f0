"""Tenants over their limits, in /metrics and flask doctor."""

import pytest

from app.core.clock import utcnow
from app.core.health import SHOWN
from app.operations import jobs
from app.usage.models import UsageCounter
from tests.cli.test_doctor import examine
from tests.factories import (
    create_limits,
    create_membership,
    create_tenant,
    create_user,
    limit_flag,
    save,
)
from tests.operations.test_metrics import samples

PAST, FUTURE = "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"


@pytest.fixture
def preset(app):
    return create_limits(
        "free",
        limit_flag("calls", 10, period="day"),
        limit_flag("projects", 3),
        limit_flag("open", -1),
        limit_flag("seats", 1),
    )


@pytest.fixture
def use(preset):
    """Store a count of this day, or of one without an end."""

    def store(tenant, feature, used, **values):
        if feature == "calls":
            day = utcnow().replace(hour=0, minute=0, second=0, microsecond=0)
            values = {"period_start": day, "period_end": FUTURE} | values
        values = {"period_start": "1970-01-01T00:00:00Z"} | values
        save(UsageCounter, tenant_id=tenant.id, feature=feature, used=used, announced=0, **values)

    return store


def join(tenant, count):
    for _ in range(count):
        create_membership(tenant, create_user(tenant))


@pytest.fixture
def counted(app, api):
    """The two gauges after the job has run."""

    def run():
        with app.app_context():
            jobs.count_over_limits()
        found = samples(api.get("/metrics").text)
        return tuple(found["tenants_over_limits", ("kind", kind)] for kind in ("usage", "seats"))

    return run


class TestTenantsOverLimits:
    def test_are_counted_once_each(self, use, counted):
        over, full = create_tenant(), create_tenant()
        for feature, used in (("calls", 11), ("projects", 4), ("open", 10**15)):
            use(over, feature, used)
        for feature, used in (("calls", 10), ("projects", 3)):
            use(full, feature, used)
        join(over, 2)
        join(full, 1)
        join(create_tenant(), 3)

        assert counted() == (1, 2)

    def test_do_not_count_for_a_period_that_is_over(self, use, counted):
        tenant = create_tenant()
        use(tenant, "calls", 11, period_start=PAST, period_end="2020-01-02T00:00:00Z")

        assert counted() == (0, 0)

    def test_are_listed_by_the_doctor(self, environment, use):
        for number in range(SHOWN + 1):
            use(create_tenant(slug=f"t{number:02}"), "calls", 11)
        tenant = create_tenant(slug="a")
        use(tenant, "projects", 4)
        use(
            tenant, "projects", 5, period_start=PAST, period_end=FUTURE
        )  # before the period was none
        join(tenant, 2)

        found = examine(environment)[0]["limits"]

        assert found["ok"]
        assert found["found"].startswith("exceeded by a: projects seats; t00: calls; t01")
        assert found["found"].endswith("t08: calls; …")
        assert "Override the limits" in found["fix"]

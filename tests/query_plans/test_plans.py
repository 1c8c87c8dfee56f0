"""Every statement of the service has a plan that does not grow with the number of tenants."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.extensions import db
from tests import factories
from tests.query_plans.collecting import Statement, collect

TENANTS = 2000  # so many that PostgreSQL scans no table for being small

# Statements of background work and of metrics that may scan a table, with the reason.
MAY_SCAN = {
    "doctor.empty_selects": "It looks at all fields for an operator, for half a second at most.",
    "doctor.some_secrets": "It reads a hundred rows, any ones.",
    "operations.count_over_limits": "It counts over all tenants, every ten minutes.",
    "operations.delivery_backlog": "There are as few endpoints as queued ones here.",
    "operations.failing_endpoints": "There are as few endpoints as queued ones here.",
    "operations.list_over_limits": "It looks at all tenants, for half a second at most.",
    "operations.sender_lag": "It reads one row, any one.",
    "plan_assignments.take_ending": "There are as few assigned plans as ending ones here.",
    "webhook_deliveries.claim": "There are as few endpoints as queued ones here.",
    "webhook_deliveries.delete_old": "The oldest rows are the first of the table.",
    "webhook_deliveries.delete_orphans": "There are as few endpoints as queued ones here.",
    "webhook_endpoint_states.find_failing": "There are as few endpoints as asked for here.",
}


@pytest.fixture(scope="module")
def statements(app) -> Iterator[list[Statement]]:
    yield collect(TENANTS)
    factories.bind(app)


class TestPlans:
    def test_no_tenant_owned_table_is_scanned(self, statements):
        owned = {table.name for table in db.metadata.tables.values() if "tenant_id" in table.c}

        scans = [
            f"{one.text}\n    {one.shape}"
            for one in statements
            if one.scanned & owned and not any(f"/* {name} */" in one.text for name in MAY_SCAN)
        ]

        assert scans == []

    def test_every_tenant_owned_table_is_read(self, statements):
        owned = {table.name for table in db.metadata.tables.values() if "tenant_id" in table.c}

        read = set().union(*(one.read for one in statements))

        assert owned <= read
        assert len(statements) > 150

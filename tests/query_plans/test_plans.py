"""Every statement of the service has a plan that does not grow with the number of tenants."""

from collections.abc import Iterator

import pytest

from app.core.db import prepared
from app.extensions import db
from tests import factories
from tests.query_plans.collecting import Statement, collect

TENANTS = 2000  # so many that PostgreSQL scans no table for being small

# Statements of background work and of metrics that may scan a table, with the reason.
MAY_SCAN = {
    "audit_positions.order_older": "A batch is as large as the tables here.",
    "custom_fields.list_empty_selects": "It looks at all fields for an operator, for half a second at most.",
    "event_outbox.backlog": "It counts what waits, at most 100,000 rows.",
    "events.sequence": "All rows of the outbox wait.",
    "flags.list_overrides_in_force": "It reads those of all tenants, at most 20,000.",
    "log_streams.count_states": "It counts those of all tenants, which have few.",
    "log_streams.mark_behind": "It looks at those of all tenants, every hour.",
    "log_streams.list_troubled": "It looks at those of all tenants, for a finding.",
    "past_bases.find_tenants": "All changes are new.",
    "plan_assignments.take_ending": "There are as few assigned plans as ending ones here.",
    "roles.count_with_permission": "It looks at those of all tenants, once for a deleted permission.",
    "setup_links.list": "For the platform it looks for a state in a table that people fill.",
    "usage_counters.count_over_limits": "It counts over all tenants, every ten minutes.",
    "usage_counters.list_over_limits": "It looks at all tenants, for half a second at most.",
    "webhook_deliveries.backlog": "There are as few endpoints as queued ones here.",
    "webhook_deliveries.claim": "There are as few endpoints as queued ones here.",
    "webhook_deliveries.delete_old": "The oldest rows are the first of the table.",
    "webhook_deliveries.delete_orphans": "There are as few endpoints as queued ones here.",
    "webhook_endpoint_states.find_failing": "There are as few endpoints as asked for here.",
    "webhook_endpoint_states.some_secrets": "It reads a hundred rows, any ones.",
    "webhook_endpoints.list_failing": "There are as few endpoints as queued ones here.",
    "webhook_feed.lag": "It reads one row, any one.",
    "work.failing_log_streams": "It looks at those of all tenants, for half a second at most.",
    "work.invalid_log_streams": "It looks at those of all tenants, for half a second at most.",
}

# `?q=` finds 2,000 rows at most. For so many PostgreSQL may scan a table with ten times as many.
FOUND = "IN (SELECT tenant_id, entity_id FROM search_terms"
OF_FOUND = {"users", "memberships"}


@pytest.fixture(scope="module")
def statements(app) -> Iterator[list[Statement]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepared, "THRESHOLD", 1)  # each statement has its generic plan
        found = collect(TENANTS)
    yield found
    factories.bind(app)


class TestPlans:
    def test_no_tenant_owned_table_is_scanned(self, statements):
        owned = {table.name for table in db.metadata.tables.values() if "tenant_id" in table.c}

        scans = [
            f"{one.text}\n    {one.shape}"
            for one in statements
            if one.scanned & owned - (OF_FOUND if FOUND in one.text else set())
            and not any(f"/* {name} */" in one.text for name in MAY_SCAN)
        ]

        assert scans == []

    def test_every_tenant_owned_table_is_read(self, statements):
        owned = {table.name for table in db.metadata.tables.values() if "tenant_id" in table.c}

        read = set().union(*(one.read for one in statements))

        assert owned <= read
        assert len(statements) > 150

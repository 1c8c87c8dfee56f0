"""Every statement of the service has a plan that does not grow with the number of tenants."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.extensions import db
from tests import factories
from tests.plans.collecting import Statement, collect

TENANTS = 2000  # so many that PostgreSQL scans no table for being small


@pytest.fixture(scope="module")
def statements(app) -> Iterator[list[Statement]]:
    yield collect(TENANTS)
    factories.bind(app)


class TestPlans:
    def test_no_tenant_owned_table_is_scanned(self, statements):
        owned = {table.name for table in db.metadata.tables.values() if "tenant_id" in table.c}

        scans = [f"{one.text}\n    {one.shape}" for one in statements if one.scanned & owned]

        assert scans == []

    def test_every_tenant_owned_table_is_read(self, statements):
        owned = {table.name for table in db.metadata.tables.values() if "tenant_id" in table.c}

        read = {node.get("Relation Name") for one in statements for node in one.nodes}

        assert owned <= read
        assert len(statements) > 150

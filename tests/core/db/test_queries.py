"""Inserting, changing and deleting single rows."""

from datetime import UTC, datetime

import pytest

from app.core import json_text
from app.core.db import tenancy
from app.core.db.queries import (
    Change,
    get_row,
    update_row,
)
from app.core.db.retries import run
from app.tenants.models import Tenant
from app.users.models import User
from tests.factories import create_tenant, create_user


@pytest.fixture
def tenant(app):
    return create_tenant(name="Before")


@pytest.fixture(autouse=True)
def _context(app):
    with app.app_context():
        yield


def as_platform(work):
    def entered():
        tenancy.enter(tenancy.PLATFORM)
        return work()

    return run(entered)


class TestUpdate:
    def test_gives_the_new_row_and_what_differed(self, tenant):
        values = {"name": "After", "slug": tenant.slug}

        changed, change = as_platform(lambda: update_row(Tenant, tenant, values))

        assert change == Change({"name": "Before"}, {"name": "After"})
        assert (changed.name, changed.version) == ("After", 2)
        assert changed.updated_at > tenant.updated_at
        assert changed == as_platform(lambda: get_row(Tenant, tenant.id))
        assert tenant.name == "Before"

    def test_gives_the_row_as_it_is_stored(self, tenant):
        user = create_user(tenant)
        numbers = [1, 1.0, -0.0, 1e16, 1e22, 5e-324, 0.1 + 0.2, 2**70, None, True]
        values = {
            "first_name": " e\u0301 \U0001f600\r\n",
            "meta_data": {"numbers": numbers, "": {"b": [], "a": {}}},
            "created_at": datetime(1999, 12, 31, 23, 59, 59, 999_999, UTC),
        }

        changed, _ = as_platform(lambda: update_row(User, user, values))

        stored = as_platform(lambda: get_row(User, user.id))
        assert json_text.dumps(changed._asdict()) == json_text.dumps(stored._asdict())

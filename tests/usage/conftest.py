"""A tenant with limits of each kind, and its key."""

import pytest

from tests.factories import create_api_key, create_limits, create_tenant, limit_flag


@pytest.fixture
def preset(app):
    return create_limits(
        "free",
        limit_flag("calls", 10, period="month"),
        limit_flag("projects", 3),
        limit_flag("storage", 5, policy="soft"),
        limit_flag("unlimited", -1, period="day"),
        limit_flag("seats", 2),
    )


@pytest.fixture
def tenant(preset):
    return create_tenant()


@pytest.fixture
def key(tenant):
    return create_api_key(tenant, ["usage:write", "usage:read"])

"""The plans that the tests' subscriptions name."""

import pytest

from tests.factories import create_preset, create_subscription

PLANS = (
    "a", "b", "early", "first", "first again", "growth", "late", "new", "old", "scale", "second",
    *(f"plan-{number}" for number in range(5)),
)  # fmt: skip


@pytest.fixture
def presets(app):
    """A preset for each plan, so that it has an effect."""
    return [create_preset(name) for name in PLANS]


@pytest.fixture
def row(tenant):
    """A subscription of the tenant."""
    return create_subscription(tenant)

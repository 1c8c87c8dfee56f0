"""What the tests of billing share."""

import pytest

from tests.billing.reading import service
from tests.billing.simulated.stripe import Stripe
from tests.billing.support import SECRET, Mirror
from tests.factories import create_preset


@pytest.fixture
def mirror(app):
    return Mirror(app)


@pytest.fixture
def named(tenant):
    """What names the tenant in a snapshot, and in the metadata of a subscription."""
    return {"tenant": tenant.slug}


@pytest.fixture
def stripe(app):
    with Stripe(secret=SECRET).serving() as account:
        yield account


@pytest.fixture
def reading(environment, stripe):
    """The service with the API key of Stripe."""
    with service(environment, stripe) as app:
        yield app


@pytest.fixture
def presets(app):
    """The presets by name."""
    return {name: create_preset(name) for name in ("free", "growth", "scale")}

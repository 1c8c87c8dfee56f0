"""What the tests of billing share."""

from dataclasses import replace

import pytest

from app.billing import api, reader
from app.billing.providers import PROVIDERS
from tests.billing.reading import service
from tests.billing.simulated.stripe import Stripe
from tests.billing.support import SECRET, Mirror
from tests.factories import create_preset


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """The reader looks often, and no test waits for the rate of a provider but those of Stripe's."""
    monkeypatch.setattr(reader, "INTERVAL", 0.1)
    for name, provider in PROVIDERS.items():
        if name != "stripe":
            monkeypatch.setitem(PROVIDERS, name, replace(provider, reads_per_second=1000))


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


@pytest.fixture(scope="session")
def stripes_service(environment):
    with service(environment, Stripe(secret=SECRET)) as app:
        yield app


@pytest.fixture
def reading(app, stripes_service, stripe, monkeypatch):
    """The service with the API key of Stripe, which has not limited it yet."""
    api._paused.clear()
    config = replace(stripes_service.extensions["config"], stripe_api_url=stripe.url)
    monkeypatch.setitem(stripes_service.extensions, "config", config)
    return stripes_service


@pytest.fixture
def presets(app):
    """The presets by name."""
    return {name: create_preset(name) for name in ("free", "growth", "scale")}

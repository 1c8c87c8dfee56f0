"""What the tests of billing share."""

import pytest

from tests.billing.support import Mirror
from tests.factories import create_preset


@pytest.fixture
def mirror(app):
    return Mirror(app)


@pytest.fixture
def presets(app):
    """The presets by name."""
    return {name: create_preset(name) for name in ("free", "growth", "scale")}

"""The Python package, so that tests can import ``controlplane``."""

import pytest

from tests.clients.assembled import assemble


@pytest.fixture(scope="session")
def controlplane_folder(tmp_path_factory):
    """The folder that has the package ``controlplane``."""
    return assemble(tmp_path_factory.mktemp("assembled"))


@pytest.fixture
def importable(controlplane_folder, monkeypatch):
    """Tests can import ``controlplane``."""
    monkeypatch.syspath_prepend(controlplane_folder)

"""The Python package, which decides from snapshots."""

from tests.clients.conftest import controlplane_folder, importable

__all__ = ["controlplane_folder", "importable"]

"""The client of the tenant control plane.

:mod:`controlplane.api` has a function for each operation, :mod:`controlplane.models` the types.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .connection import ApiError, Client, each, etag

__all__ = ["ApiError", "Client", "each", "etag"]


def __getattr__(name: str) -> Any:
    """Import the HTTP library only for a program that sends something."""
    if name in __all__:
        return getattr(import_module(".connection", __name__), name)
    raise AttributeError(name)

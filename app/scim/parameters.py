"""The query parameters ``attributes`` and ``excludedAttributes``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scim2_models import ResponseParameters

Keeps = Callable[[str], bool]
"""Tells whether an answer has an attribute of the first level, in lower case."""


def kept(parameters: ResponseParameters[Any] | None) -> Keeps:
    """What the answer to a request with these parameters has; without them it has everything."""
    if parameters is None:
        return lambda name: True
    wanted = [str(path).lower() for path in parameters.attributes or ()]
    excluded = [str(path).lower() for path in parameters.excluded_attributes or ()]

    def keeps(name: str) -> bool:
        if wanted:
            return any(name in path for path in wanted)
        return not any(path.rpartition(":")[2] == name for path in excluded)

    return keeps

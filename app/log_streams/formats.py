"""The formats of records."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.core.json_text import Json
from app.events.ocsf import to_ocsf

FORMATS: Mapping[str, Callable[[dict[str, Json]], dict[str, Json]]] = {
    "native": lambda event: event,
    "ocsf": to_ocsf,
}
"""The name of a format -> a function of an event as its owner reads it in the feed."""

"""docs/reference/event-types.md: the types of events."""

from __future__ import annotations

from collections.abc import Mapping

from app.dev.reference.markdown import page
from app.events.catalogue import EventType

INTRODUCTION = """\
[Events](../concepts/events.md) describes the feed, and [Webhook endpoints](../guides/webhook-endpoints.md) the delivery to a URL. The OpenAPI document has an example of each type, under `webhooks`. In brackets is the schema of `data`. The types `plan.*` and `email.*` are only for the platform."""


def render(catalogue: Mapping[str, EventType]) -> str:
    """The page, with the types in the alphabet's order and the schema of their ``data``."""
    lines = [
        f"- `{name}` (`{kind.shape.__name__.removesuffix('Schema')}`): {kind.summary}"
        for name, kind in sorted(catalogue.items())
    ]
    return page("Event types", INTRODUCTION, "\n".join(lines))

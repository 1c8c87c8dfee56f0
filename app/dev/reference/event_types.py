"""docs/reference/event-types.md: the types of events."""

from __future__ import annotations

from collections.abc import Mapping

from app.dev.reference.markdown import page, table
from app.events.catalogue import EventType

INTRODUCTION = """\
[Events](../concepts/events.md) describes the feed, and [Webhook endpoints](../guides/webhook-endpoints.md) the delivery to a URL. The OpenAPI document has an example of each type, under `webhooks`. The types `plan.*` and `email.*` are only for the platform."""


def render(catalogue: Mapping[str, EventType]) -> str:
    """The page, with the types in the alphabet's order."""
    rows = [
        (f"`{name}`", kind.summary, shape_of(kind), ", ".join(f"`{one}`" for one in kind.changes))
        for name, kind in sorted(catalogue.items())
    ]
    header = ("Type", "What has happened", "Schema of `data`", "`changes`, for example")
    return page("Event types", INTRODUCTION, table(header, rows))


def shape_of(kind: EventType) -> str:
    return f"`{kind.shape.__name__.removesuffix('Schema')}`"
